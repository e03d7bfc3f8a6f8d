"""The lock that a living driver holds on its experiment.

It is an `flock`, so it vanishes with the process however that ends: a journal without an end whose lock
is not held belongs to a driver that died.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from typing import Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.layout import ThingFolder

_PATIENCE_S: Final = 0.5


class DriverLock:
    """Holds an experiment for this process; take it before the first fact is written.

    Raises:
        StoreError: From `acquire` and `with`, if another driver holds the experiment.
    """

    def __init__(self, folder: ThingFolder) -> None:
        self.folder = folder
        self._fd = -1

    def acquire(self) -> None:
        """Take the lock, or raise `StoreError` naming the process that has it."""
        self.folder.root.mkdir(parents=True, exist_ok=True)
        if not holds_lock(self.folder) and _remote_driver_host(self.folder):
            raise StoreError(
                f"Experiment {self.folder.id} is being run by {holder(self.folder)}; wait for it, or stop it."
            )
        fd = os.open(self.folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        give_up_at = time.monotonic() + _PATIENCE_S
        while not _try_lock(fd, fcntl.LOCK_EX):
            # A process that asks `is_held` has a shared lock for an instant; a driver keeps its own.
            if time.monotonic() > give_up_at:
                os.close(fd)
                raise StoreError(
                    f"Experiment {self.folder.id} is being run by {holder(self.folder)}. "
                    f"Wait for it, or end it with `cargobike stop {self.folder.id}`."
                )
            time.sleep(0.002)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        """Release the lock; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> DriverLock:
        self.acquire()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


def is_held(folder: ThingFolder) -> bool:
    """Tell whether a driver is running this experiment now, here or, on shared storage, elsewhere."""
    return holds_lock(folder) or bool(_remote_driver_host(folder))


def _remote_driver_host(folder: ThingFolder) -> str:
    """Return the host of a driver that was alive lately, according to the local copy of shared storage."""
    try:
        head = folder.remote_head.read_bytes()
    except OSError:
        return ""
    from cargobike.store.files.remote import Head  # noqa: PLC0415 - only for local copies of shared storage

    try:
        remote = msgspec.json.decode(head, type=Head)
    except msgspec.DecodeError:
        return ""
    return remote.host if remote.is_alive and remote.pid else ""


def holds_lock(folder: ThingFolder) -> bool:
    """Tell whether a driver on this host, or one that shares its disk, holds the lock."""
    try:
        fd = os.open(folder.lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"Cannot look at the lock {folder.lock}: {error.strerror}.") from error
    try:
        return not _try_lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def holder(folder: ThingFolder) -> str:
    """Say which process took the lock last, such as `process 4711 on host tower`."""
    elsewhere = _remote_driver_host(folder)
    if elsewhere and not holds_lock(folder):
        return f"a process on host {elsewhere}"
    try:
        pid, _, host = folder.lock.read_text().strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        return "another process"
    return f"process {pid} on host {host}" if pid and host else "another process"


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
