"""The lock that a living driver holds on its experiment.

It is an `flock`, so it vanishes with the process however that ends: a journal without an end whose lock
is not held belongs to a driver that died. Copies of the driver made by `fork` share the lock and may outlive it.
The lock therefore also says which process took it; once that has ended, the lock of a copy does not count.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import time
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.layout import ThingFolder
from cargobike.core.plain_files import read_plain
from cargobike.core.running.forks import abandon_in_copies
from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.shared import shared_url

_PATIENCE_S: Final = 0.5
_NO_LOCK: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}  # no file, or one that no driver can hold


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
        try:
            self.folder.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"The folder {self.folder.root} cannot be made: {error.strerror}.") from error
        if not holds_lock(self.folder) and _remote_driver_host(self.folder):
            raise StoreError(
                f"Experiment {self.folder.id} is being run by {holder(self.folder)}; wait for it, or stop it."
            )
        give_up_at = time.monotonic() + _PATIENCE_S
        while (fd := self._take()) is None:
            # A process that asks `is_held` has a shared lock for an instant; a driver keeps its own.
            if time.monotonic() > give_up_at:
                raise StoreError(
                    f"Experiment {self.folder.id} is being run by {holder(self.folder)}. "
                    f"Wait for it, or end it with `cargobike stop {self.folder.id}`."
                )
            time.sleep(0.002)
        self._fd = fd
        abandon_in_copies(self)

    def _take(self) -> int | None:
        try:
            return _take(self.folder)
        except OSError as error:
            raise StoreError(f"The lock {self.folder.lock} cannot be taken: {error.strerror}.") from error

    def release(self) -> None:
        """Release the lock; may be called twice."""
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # a copy of this process may have it open too
        self.abandon()

    def abandon(self) -> None:
        """Close our end of the lock, and leave it to the process that took it."""
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
        head = read_plain(folder.remote_head)
        if not shared_url(folder.project):
            return ""  # a mark that was left in a project that is not on shared storage any more
    except OSError:
        return ""
    from cargobike.store.files.remote import Head  # noqa: PLC0415 - only for local copies of shared storage

    try:
        remote = msgspec.json.decode(head, type=Head)
    except UNDECODABLE:
        return ""
    return remote.host if remote.is_alive and remote.pid else ""


def holds_lock(folder: ThingFolder) -> bool:
    """Tell whether a driver on this host, or one that shares its disk, holds the lock."""
    try:
        fd = os.open(folder.lock, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NO_LOCK:
            return False
        raise StoreError(f"Cannot look at the lock {folder.lock}: {error.strerror}.") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode) or _try_lock(fd, fcntl.LOCK_SH):
            return False
        return not has_ended(_read(fd)) or _is_being_taken(folder)
    finally:
        os.close(fd)


def clear_strange(folder: ThingFolder) -> None:
    """Remove what lies in the place of a lock and cannot be one: a folder, a pipe, a link to nothing."""
    for path in (folder.lock, _door(folder)):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                shutil.rmtree(path)
            elif not stat.S_ISREG(mode) and not path.is_file():
                path.unlink()


def holder(folder: ThingFolder) -> str:
    """Say which process took the lock last, such as `process 4711 on host tower`."""
    elsewhere = _remote_driver_host(folder)
    if elsewhere and not holds_lock(folder):
        return f"a process on host {elsewhere}"
    try:
        pid, host = read_plain(folder.lock).decode("utf-8", "replace").split()[:2]
    except (OSError, ValueError):
        return "another process"
    return f"process {pid} on host {host}"


def _take(folder: ThingFolder) -> int | None:
    """Take the lock and write our name into it; returns its descriptor, `None` while another process has it.

    A second file is the door: only who has locked that may take the lock, or put the door in place of a lock that only
    copies of a dead driver hold.
    """
    door = _door(folder)
    with _Opened(door) as at_door:
        if not _try_lock(at_door.fd, fcntl.LOCK_EX) or not at_door.is_current:
            return None
        with _Opened(folder.lock) as lock:
            if _try_lock(lock.fd, fcntl.LOCK_EX):
                lock.write(name_of_this_process())
                door.unlink(missing_ok=True)
                return lock.keep()
            if not has_ended(_read(lock.fd)):
                door.unlink(missing_ok=True)
                return None
        at_door.write(name_of_this_process())
        door.replace(folder.lock)
        return at_door.keep()


def _door(folder: ThingFolder) -> Path:
    return folder.lock.with_name(f"{folder.lock.name}.new")


def _is_being_taken(folder: ThingFolder) -> bool:
    """Tell whether a process is about to write its name into the lock."""
    try:
        fd = os.open(_door(folder), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


class _Opened:
    """A file, open for the length of a `with` block, or for longer if it is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @property
    def is_current(self) -> bool:
        """Whether the file still has its name."""
        try:
            return os.path.samestat(os.fstat(self.fd), os.stat(self._path))
        except FileNotFoundError:
            return False

    def write(self, text: str) -> None:
        """Replace the content."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, text.encode(), 0)

    def keep(self) -> int:
        """Return the descriptor, and leave it open."""
        fd, self.fd = self.fd, -1
        return fd

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd >= 0:
            os.close(self.fd)


def _read(fd: int) -> str:
    return os.pread(fd, 4096, 0).decode(errors="replace")


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
