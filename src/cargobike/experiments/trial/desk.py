"""The directory that a train function works in."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from cargobike.core.errors import WaitError

_TRIES = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_PAUSE_S = 0.001


class Desk:
    """The directory that user code works in: one for each trial, kept only if something was left in it.

    Making and removing a directory takes most of the time of a tiny trial. An empty one is therefore renamed for the
    next trial, which costs a tenth, and the working directory goes with it.

    Others may work in the same directory: the ranks of a gang, or another worker where a trial goes on that was paused
    here. Whoever works in it holds a shared lock, so that only the last one there removes or renames it.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._path = ""
        self._handle: int | None = None

    def move_to(self, trial: str, *, with_others: bool = False) -> None:
        """Work in an empty directory of this trial's own, or the one where others of this trial work or have worked.

        Args:
            trial: Name of the directory.
            with_others: Whether others may move to the same one just now.
        """
        target = f"{self._root}/{trial}"
        if with_others or not self._has_moved_along(target):
            if self._handle is not None:
                self.clear()
            self._handle = _enter(target)
        self._path = target

    def _has_moved_along(self, target: str) -> bool:
        """Rename an empty directory that is of no use any more, and work there; tell whether that was possible."""
        if self._handle is None or os.path.lexists(target) or not _is_locked(self._handle, fcntl.LOCK_EX):
            return False
        try:
            if os.listdir(self._path):
                return False
            os.rename(self._path, target)
        except OSError:  # train functions may do anything to it
            return False
        _is_locked(self._handle, fcntl.LOCK_SH)
        os.chdir(target)
        return True

    def clear(self) -> None:
        """Leave the directory, and remove it if it is empty and nobody else works in it."""
        os.chdir("/")
        if self._handle is None:
            return
        if _is_locked(self._handle, fcntl.LOCK_EX):
            with contextlib.suppress(OSError):
                os.rmdir(self._path)
        os.close(self._handle)
        self._handle = None


def _enter(target: str) -> int:
    """Work in a directory, made if need be; returns what locks it."""
    for _ in range(_TRIES):
        try:
            os.mkdir(target)
        except FileExistsError:
            pass
        except FileNotFoundError:  # it is the first one
            os.makedirs(os.path.dirname(target), exist_ok=True)
            continue
        try:
            handle = os.open(target, _FOLDER)
        except FileNotFoundError:  # an earlier attempt has just left, and removed it
            continue
        if _is_locked(handle, fcntl.LOCK_SH) and _is_at(handle, target):
            os.fchdir(handle)
            return handle
        os.close(handle)
        time.sleep(_PAUSE_S)
    raise WaitError(f"Another process keeps {target} locked: it has stopped just as it left that directory.")


def _is_at(handle: int, path: str) -> bool:
    try:
        here, there = os.fstat(handle), os.stat(path)
    except FileNotFoundError:
        return False
    return here.st_ino == there.st_ino and here.st_dev == there.st_dev


def _is_locked(handle: int, how: int) -> bool:
    """Lock a directory, for us alone or with others who work there; tell whether they let us."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # this file system has no locks: then the last to come is right
        return True
    return True
