"""Read the lines of a journal from a time on, without reading what precedes them.

Times never run backwards within one driver, so the place is found by halving the file. A journal that another driver
continued, whose clock was behind, may have times out of order: then lines can be missed, and callers have to be able to
tell (`experiments/reading.py` counts).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from cargobike.core.errors import StoreError
from cargobike.core.plain_files import open_plain

_NEAR_ENOUGH: Final = 32 << 10
"""A place that is so many bytes too early is not looked for any closer: reading them is as quick."""
_BLOCK_BYTES: Final = 128 << 10
_PROBE_BYTES: Final = 4 << 10
_LAST_BYTES: Final = 192  # more than time, number and checksums need, which every line ends with
_AT: Final = b'"at":'


def lines_between(path: Path, start: float, end: float = math.inf) -> Iterator[list[bytes]]:
    """Yield the lines of a journal between two times in lists, and some before and after them.

    A last line without an end is left out. Nothing is checked: what is used has to be (`is_intact`).

    Raises:
        StoreError: If there is no journal.
    """
    offset = find_time(path, start)
    with _open(path) as file:
        file.seek(offset)
        rest = b""
        while block := file.read(_BLOCK_BYTES):
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            yield lines
            if lines and _time_of(lines[-1]) > end:
                return


def find_time(path: Path, at: float) -> int:
    """Return an offset where a line begins, with only earlier lines before it, if times are in order."""
    with _open(path) as file:
        early, late = 0, os.fstat(file.fileno()).st_size
        while late - early > _NEAR_ENOUGH:
            middle = (early + late) // 2
            line_end, line_at = _probe(file, middle)
            if line_at < at:
                early = line_end
            else:
                late = middle
    return early


def _open(path: Path) -> BinaryIO:
    try:
        return open_plain(path)
    except OSError as error:
        raise StoreError(f"Cannot read the journal {path}: {error.strerror}.") from error


def _probe(file: BinaryIO, offset: int) -> tuple[int, float]:
    """Return where the line ends that an offset lies in, and its time; a line without either counts as late."""
    begin = max(0, offset - _LAST_BYTES)
    file.seek(begin)
    seen, newline = b"", -1
    while newline < 0:
        more = file.read(_PROBE_BYTES)
        if not more:
            return offset, math.inf
        newline = more.find(b"\n", max(0, offset - begin - len(seen)))
        newline += len(seen) if newline >= 0 else 0
        seen += more
    return begin + newline + 1, _time_of(seen[:newline])


def _time_of(line: bytes) -> float:
    """Return the time that a line ends with; infinite if it has none."""
    _, found, rest = line[-_LAST_BYTES:].rpartition(_AT)
    try:
        return float(rest.partition(b",")[0]) if found else math.inf
    except ValueError:
        return math.inf
