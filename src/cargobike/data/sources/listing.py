"""Which files a path, a glob, a folder or an address means."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.fs as pafs

from cargobike.core.errors import NotFoundError, StoreError, nearest_names
from cargobike.store.files.storages import open_storage
from cargobike.store.history.environment import without_credentials

_MAGIC: Final = re.compile(r"[*?\[]")


class File(NamedTuple):
    """A file, and how it was when it was found."""

    system: Any
    """A file system of `pyarrow.fs`."""
    path: str
    relative: str
    """Its path below what the user gave: the same wherever the data is moved as a whole."""
    shown: str
    """For people; without credentials."""
    size: int
    changed_ns: int
    origin: str
    """What the user gave, for people."""

    @property
    def is_local(self) -> bool:
        """Whether it lies on a disk of this machine."""
        return isinstance(self.system, pafs.LocalFileSystem)

    def now(self) -> tuple[int, int]:
        """Return its size and time of change as they are now."""
        info = self.system.get_file_info(self.path)
        return info.size or 0, info.mtime_ns or 0


def is_address(text: str) -> bool:
    """Tell whether a text is an address such as `s3://…`, and not a path."""
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text))


def files_of(given: str | os.PathLike[str], suffixes: Sequence[str]) -> list[File]:
    """Return the files that a path, glob, folder or address means, in the order of their names.

    A folder means all files below it whose names end in one of the suffixes; names that begin with `.` or `_` are left
    out, as Spark and others keep notes in such files.

    Raises:
        NotFoundError: If there are none.
    """
    text = os.fspath(given)
    shown = without_credentials(text) if is_address(text) else text
    try:
        if is_address(text) and not text.startswith("file://"):
            files = list(_remote(text, shown, suffixes))
        else:
            files = list(_local(text.removeprefix("file://"), shown, suffixes))
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{shown} cannot be listed: {error}") from error
    if not files:
        raise _missing(text, shown, suffixes)
    return sorted(files, key=lambda file: file.relative)


def _local(text: str, shown: str, suffixes: Sequence[str]) -> Iterator[File]:
    system = pafs.LocalFileSystem()
    path = Path(text).expanduser()
    if path.is_dir():
        found = [
            each
            for each in path.rglob("*")
            if each.name.endswith(tuple(suffixes))
            and not _is_hidden(each.relative_to(path).as_posix())
            and each.is_file()
        ]
        base = path
    elif path.exists() or not _MAGIC.search(text):
        found = [path] if path.exists() else []
        base = path.parent
    else:
        found = [Path(each) for each in glob.glob(os.fspath(path), recursive=True) if Path(each).is_file()]
        base = _fixed_part(path)
        found = [each for each in found if _wants_hidden(text) or not _is_hidden(each.relative_to(base).as_posix())]
    for info, each in zip(system.get_file_info([os.fspath(each) for each in found]), found, strict=True):
        relative = each.relative_to(base).as_posix()
        yield File(system, info.path, relative, os.fspath(each), info.size or 0, info.mtime_ns or 0, shown)


def _remote(text: str, shown: str, suffixes: Sequence[str]) -> Iterator[File]:
    scheme, _, rest = text.rstrip("/").partition("://")
    magic = _MAGIC.search(rest)
    base = text if magic is None else f"{scheme}://{rest[: magic.start()].rpartition('/')[0]}"
    pattern = "" if magic is None else text[len(base) :].lstrip("/")
    above, _, name = rest.rpartition("/")
    if magic is None and above:  # an address opens a folder, so a file is found in the one above it
        system, root = open_arrow(f"{scheme}://{above}")
        info = system.get_file_info(f"{root}/{name}".lstrip("/"))
        if info.type == pafs.FileType.File:
            yield File(system, info.path, name, shown, info.size or 0, info.mtime_ns or 0, shown)
            return
    system, root = open_arrow(base)
    for info in system.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True)):
        relative = info.path[len(root) :].lstrip("/")
        wanted = fnmatchcase(relative, pattern) if pattern else relative.endswith(tuple(suffixes))
        if info.type == pafs.FileType.File and wanted and (_wants_hidden(pattern) or not _is_hidden(relative)):
            place = f"{without_credentials(base)}/{relative}"
            yield File(system, info.path, relative, place, info.size or 0, info.mtime_ns or 0, shown)


def open_arrow(url: str) -> tuple[Any, str]:
    """Return a file system of `pyarrow.fs`, and the path on it that an address names."""
    system, root = open_storage(url).arrow()
    return system, root.rstrip("/")


def _is_hidden(relative: str) -> bool:
    return any(name.startswith((".", "_")) for name in relative.split("/"))


def _wants_hidden(pattern: str) -> bool:
    """Tell whether a glob names files or folders that are usually left out."""
    return any(name.startswith((".", "_")) and _MAGIC.search(name) for name in pattern.split("/"))


def _fixed_part(pattern: Path) -> Path:
    """Return the folder in which a glob begins to search."""
    fixed = itertools.takewhile(lambda name: not _MAGIC.search(name), pattern.parts)
    return Path(*fixed)


def _missing(text: str, shown: str, suffixes: Sequence[str]) -> NotFoundError:
    ends = " or ".join(f"*{suffix}" for suffix in suffixes)
    if is_address(text):
        return NotFoundError(f"There are no files at {shown}; a folder is searched for {ends}.", wanted=shown)
    path = Path(text).expanduser()
    if path.is_dir():
        return NotFoundError(f"The folder {shown} has no files that end in {ends}.", wanted=shown)
    folder = path.parent
    beside = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
    near = nearest_names(path.name, beside)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    where = f" ({folder.absolute()})" if not path.is_absolute() else ""
    return NotFoundError(f"There is no file {shown}{where}.{hint}", wanted=shown, nearest=near)
