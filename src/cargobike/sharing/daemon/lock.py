"""One daemon for each project and network: a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from cargobike.core.errors import StoreError
from cargobike.core.plain_files import read_plain
from cargobike.core.running.process_names import name_of_this_process


class DaemonLock:
    """Held for the length of a `with` block.

    Args:
        folder: The network's folder in the project.
        network: Its name, for the error.

    Raises:
        StoreError: On entering, if another process holds it; says which.
    """

    def __init__(self, folder: Path, network: str) -> None:
        self._path, self._network = folder / "daemon.lock", network
        self._fd = -1

    def __enter__(self) -> DaemonLock:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise StoreError(
                f"The network {self._network!r} is served for this project by {holder(self._path)} already. Ask it "
                f"with `cargobike share status --network {self._network}`, or end it first."
            ) from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, name_of_this_process().encode(), 0)
        self._fd = fd
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        self._fd = -1


def holder(path: Path) -> str:
    """Say which process took a lock last: `process 4711 on host tower`."""
    try:
        pid, host = read_plain(path).decode("utf-8", "replace").split()[:2]
    except (OSError, ValueError):
        return "another process"
    return f"process {pid} on host {host}"
