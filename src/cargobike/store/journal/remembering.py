"""What journals said when they were last read, kept while a process runs.

A list of ten thousand things costs one look at the status of each journal; only those that changed are read again.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from cargobike.core.errors import StoreError
from cargobike.core.registering.kinds import Kind

_T = TypeVar("_T")
MOST_KEPT: Final = 200_000
"""How many journals a process remembers; each takes some hundred bytes."""


class Mark(NamedTuple):
    """What differs after every change of a file: another file of the name, more bytes, a later time."""

    inode: int
    size: int
    changed_ns: int


def mark_of(path: str | Path) -> Mark | None:
    """Return the mark of a plain file; `None` if there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return Mark(status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def thing_names(kind: Kind, project_root: Path) -> list[str]:
    """Return the names of all folders that can be things of a kind, sorted; for journals is not looked.

    What begins with a dot is being made or removed; a name that is not text cannot be an id.
    """
    try:
        names = os.listdir(os.path.join(project_root, kind.folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in names if not name.startswith(".") and kind.id.fullmatch(name))


def journals_of(kind: Kind, project_root: Path) -> Iterator[tuple[str, str, Mark]]:
    """Yield name, journal and its mark of all things of a kind that have a journal, by name."""
    # Paths as text: ten thousand objects of pathlib take longer than the look at the files.
    folder = os.path.join(project_root, kind.folder)
    for name in thing_names(kind, project_root):
        path = f"{folder}/{name}/{kind.journal}"
        mark = mark_of(path)
        if mark is not None:
            yield name, path, mark


class Remembered(Generic[_T]):
    """What a function made of journals; it is asked again when a journal has changed. May be used by several threads.

    What it returns is shared by all callers, and so must not be changed by them.

    Args:
        read: Reads a journal: the name of the thing, and the path. What it raises as `StoreError` is remembered, too.
    """

    def __init__(self, read: Callable[[str, Path], _T]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Mark, _T | StoreError]] = {}

    def all(self, kind: Kind, project_root: Path) -> Iterator[tuple[str, _T | StoreError]]:
        """Yield all things of a kind that have a journal, by name: what was read of each, or why it cannot be."""
        for name, path, mark in journals_of(kind, project_root):
            yield name, self.of(name, path, mark)

    def of(self, name: str, path: str, mark: Mark) -> _T | StoreError:
        """Return what was read of a journal that has a mark."""
        known = self._known.get(path)
        if known is not None and known[0] == mark:
            return known[1]
        try:
            made: _T | StoreError = self._read(name, Path(path))
        except StoreError as error:
            made = error
        except OSError as error:
            made = StoreError(f"{path} cannot be read: {error.strerror}.")
        with self._lock:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            self._known[path] = mark, made
        return made
