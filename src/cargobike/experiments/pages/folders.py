"""Reads folders that user code has written: no path leads out, no link is followed, only plain files are opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import quote

from cargobike.core.errors import NotFoundError

_MOST_ENTRIES = 2000
_BLOCK_BYTES = 1 << 18
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a folder; what is neither a file nor a folder, such as a link, is `other`."""

    name: str
    path: str
    kind: Literal["file", "folder", "other"]
    size_bytes: int
    changed_at: float


def list_folder(root: Path, path: str) -> tuple[list[Entry], int]:
    """Return the entries of a folder below `root`, folders first, and how many were left out.

    Raises:
        NotFoundError: If there is no such folder, or the path leads out.
    """
    parts = parts_of(path)
    fd = _open(root, parts, _FOLDER, path)
    try:
        entries = [entry for name in os.listdir(fd) if (entry := _entry(fd, name, parts)) is not None]
    finally:
        os.close(fd)
    entries.sort(key=lambda entry: (entry.kind != "folder", entry.name))
    return entries[:_MOST_ENTRIES], max(0, len(entries) - _MOST_ENTRIES)


def open_file(root: Path, path: str) -> tuple[BinaryIO, int, str]:
    """Open a plain file below `root`; returns it with its size and its name, quoted for a header.

    Raises:
        NotFoundError: If there is no such file, it is something else, or the path leads out.
    """
    parts = parts_of(path)
    if not parts:
        raise NotFoundError(f"{path[:200]!r} is not a file.")
    fd = _open(root, parts, _FILE, path)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise NotFoundError(f"{path!r} is not a file.")
    return os.fdopen(fd, "rb"), status.st_size, quote(os.fsencode(parts[-1]), safe="")


def read_blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield exactly `size` bytes of a file that may still be growing, and close it."""
    with file:
        while size > 0 and (block := file.read(min(size, _BLOCK_BYTES))):
            size -= len(block)
            yield block


def parts_of(path: str) -> list[str]:
    """Return the names in a path that stays inside.

    Raises:
        NotFoundError: If it is absolute, has `..` in it, or characters that no path has.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\0" in path or "\\" in path:
        raise NotFoundError(f"{path[:200]!r} is not a path inside the experiment's folder.")
    return parts


def _open(root: Path, parts: list[str], flags: int, path: str) -> int:
    """Walk down name by name: each is opened in the folder before it, so that nothing can be swapped underneath."""
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for index, part in enumerate(parts):
            is_last = index == len(parts) - 1
            try:
                below = os.open(part, flags if is_last else _FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
    except (OSError, UnicodeEncodeError) as error:
        raise NotFoundError(f"There is no {path[:200]!r} in this experiment that can be shown.") from error
    return fd


def _entry(fd: int, name: str, parts: list[str]) -> Entry | None:
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:  # removed meanwhile
        return None
    kind: Literal["file", "folder", "other"] = "other"
    if stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "folder"
    text = os.fsencode(name).decode("utf-8", "replace")
    return Entry(text, "/".join([*parts, text]), kind, status.st_size if kind == "file" else 0, status.st_mtime)
