"""Parts of files that may still be growing, cut between characters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of a file: its text, where it begins, where to read on, and how long the file is now."""

    text: str
    offset: int
    next_offset: int
    size: int


def read_part(path: Path, offset: int, limit: int, *, is_final: bool) -> LogPart:
    """Read up to `limit` bytes from an offset; a negative one counts from the end, and begins with a whole line.

    A file that is not there yet is empty. A link is not followed: user code could have put it in the file's place.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return LogPart("", 0, 0, 0)
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        data = os.pread(file.fileno(), limit, start)
    if offset < 0 and start > 0:
        skipped = data.find(b"\n") + 1
        data, start = data[skipped:], start + skipped
    cut = 0 if is_final and start + len(data) >= size else _unfinished(data)
    data = data[: len(data) - cut]
    return LogPart(data.decode("utf-8", "replace"), start, start + len(data), size)


def _unfinished(data: bytes) -> int:
    """Return how many bytes at the end belong to a character that is not whole yet."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if length > back else 0
        if byte < 0x80:
            return 0
    return 0
