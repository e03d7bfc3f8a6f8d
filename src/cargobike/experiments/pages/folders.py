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
from cargobike.core.open_folder import OpenFolder

_MOST_ENTRIES = 2000
_BLOCK_BYTES = 1 << 18


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
    with _folder(root, parts, path) as folder:
        entries = [entry for name in os.listdir(folder.fd) if (entry := _entry(folder, name, parts)) is not None]
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
    with _folder(root, parts[:-1], path) as folder:
        try:
            fd = folder.open_file(parts[-1])
        except (OSError, UnicodeEncodeError) as error:
            raise NotFoundError(f"{path[:200]!r} is not a file that can be shown.") from error
    return os.fdopen(fd, "rb"), os.fstat(fd).st_size, quote(os.fsencode(parts[-1]), safe="")


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


def _folder(root: Path, parts: list[str], path: str) -> OpenFolder:
    try:
        with OpenFolder.at(root) as top:
            return top.below(parts)
    except (OSError, UnicodeEncodeError) as error:
        raise NotFoundError(f"There is no {path[:200]!r} in this experiment that can be shown.") from error


def _entry(folder: OpenFolder, name: str, parts: list[str]) -> Entry | None:
    try:
        status = folder.status(name)
    except OSError:
        return None
    if status is None:  # removed meanwhile
        return None
    kind: Literal["file", "folder", "other"] = "other"
    if stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "folder"
    text = os.fsencode(name).decode("utf-8", "replace")
    return Entry(text, "/".join([*parts, text]), kind, status.st_size if kind == "file" else 0, status.st_mtime)
