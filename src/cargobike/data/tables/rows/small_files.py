"""Finds and reads many small files, local or on a storage, in the order of their names, several at once."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, Protocol

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.core.plain_files import read_plain
from cargobike.data.sources.listing import is_address
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage
from cargobike.store.history.environment import without_credentials

LARGEST = 1 << 30
_AHEAD_BYTES = 64 << 20
_MAGIC = re.compile(r"[*?\[]")


class SmallFile(NamedTuple):
    """A file below the folder: its path, with `/` between names, and its size."""

    path: str
    size: int


class Folder(Protocol):
    """Where small files lie."""

    def files(self) -> Iterable[SmallFile]:
        """Return the files, in any order."""

    def read(self, path: str) -> bytes:
        """Return the content of one; may be called from several threads."""


def find_files(given: str | os.PathLike[str]) -> tuple[Folder, list[SmallFile]]:
    """Return the files that a folder, a glob or an address means, in the order of their paths.

    Names that begin with a dot are left out, with everything below such folders.

    Raises:
        NotFoundError: If there are none.
        InvalidInputError: If some cannot be packed; lists them.
    """
    text = os.fspath(given)
    base, pattern = _split(text)
    folder: Folder = StoredFolder(open_storage(base)) if is_address(base) else LocalFolder(os.path.expanduser(base))
    parts = pattern.split("/") if pattern else []
    files = [
        file
        for file in folder.files()
        if not any(name.startswith(".") for name in file.path.split("/"))
        and (not parts or _fits(file.path.split("/"), parts))
    ]
    if not files:
        raise NotFoundError(f"There are no files at {without_credentials(text)!r}.", wanted=without_credentials(text))
    large = [f"{file.path!r} has {file.size:,} bytes" for file in files if file.size > LARGEST]
    if large:
        raise InvalidInputError(f"Files of more than {LARGEST:,} bytes cannot be packed.", large[:20])
    return folder, sorted(files)


def _split(text: str) -> tuple[str, str]:
    """Return the folder in which a glob begins, and the rest of it."""
    scheme, separator, rest = text.partition("://") if is_address(text) else ("", "", text)
    magic = _MAGIC.search(rest)
    if magic is None or (not separator and os.path.isdir(os.path.expanduser(text))):
        return text, ""
    base = rest[: magic.start()].rpartition("/")[0]
    start = len(base) + 1 if base or rest.startswith("/") else 0
    return f"{scheme}{separator}{base or ('/' if rest.startswith('/') else '.')}", rest[start:]


def _fits(names: list[str], pattern: list[str]) -> bool:
    """Tell whether a path fits a glob: `*` stays within a name, `**` means any folders."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        return any(_fits(names[skipped:], pattern[1:]) for skipped in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], pattern[0]) and _fits(names[1:], pattern[1:])


class LocalFolder:
    """A folder of this host. Links count if they lead to something in the folder itself.

    Args:
        root: The folder.
    """

    def __init__(self, root: str) -> None:
        self._root = Path(root).resolve()
        if not self._root.is_dir():
            raise NotFoundError(f"There is no folder {root!r}.", wanted=root)

    def files(self) -> Iterator[SmallFile]:
        """Yield the files; refuses names that are not text, and links that lead out of the folder."""
        mistakes: list[str] = []
        pending = [""]
        while pending:
            inner = pending.pop()
            for entry in os.scandir(self._root / inner):
                path = f"{inner}/{entry.name}" if inner else entry.name
                if entry.name.startswith("."):
                    continue
                if mistake := self._mistake(entry):
                    mistakes.append(f"{path!r} {mistake}")
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file():
                    yield SmallFile(path, entry.stat().st_size)
        if mistakes:
            raise InvalidInputError(f"Some files in {self._root} cannot be packed.", sorted(mistakes)[:20])

    def _mistake(self, entry: os.DirEntry[str]) -> str:
        try:
            entry.name.encode()
        except UnicodeEncodeError:
            return "is no UTF-8 text; rename it"
        if not entry.is_symlink():
            return "" if entry.is_file() or entry.is_dir() else "is no plain file; move it away"
        target = Path(os.path.realpath(entry.path))
        if self._root not in target.parents:
            return "is a link that leads out of the folder; copy the file instead"
        return "" if target.is_file() else "is a link that leads to no file; remove it"

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        try:
            return read_plain(self._root / path)
        except OSError as error:
            raise StoreError(f"{self._root / path} cannot be read: {error.strerror}.") from error


class StoredFolder:
    """A folder on a storage.

    Args:
        storage: The storage.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def files(self) -> Iterator[SmallFile]:
        """Yield the files."""
        for entry in self._storage.list(deep=True):
            yield SmallFile(entry.path, entry.size)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        data = self._storage.read(path)
        if data is None:
            raise StoreError(f"{self._storage}/{path} was there a moment ago, and is gone.")
        return data


def read_in_order(folder: Folder, files: list[SmallFile], threads: int) -> Iterator[tuple[SmallFile, bytes]]:
    """Yield files with their content, in order; threads read ahead, a few dozen megabytes at most."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="cargobike-pack")
    waiting: deque[tuple[SmallFile, Future[bytes]]] = deque()
    size = 0
    try:
        for file in files:
            waiting.append((file, pool.submit(folder.read, file.path)))
            size += file.size
            while len(waiting) > 8 * threads or (size > _AHEAD_BYTES and waiting):
                first, content = waiting.popleft()
                size -= first.size
                yield first, content.result()
        while waiting:
            first, content = waiting.popleft()
            yield first, content.result()
    finally:
        pool.shutdown(cancel_futures=True)
