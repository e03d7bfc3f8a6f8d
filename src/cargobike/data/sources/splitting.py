"""Finds where records end in text that arrives in pieces, and cuts it into stretches of whole records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cargobike.core.errors import InvalidInputError

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
LONGEST_RECORD = 64 << 20
"""A record of more bytes is a mistake: most often a quote that never closes."""

Places = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Stretch(NamedTuple):
    """Whole records side by side in a file."""

    start: int
    end: int
    rows: int
    """How many records there are, empty lines left out."""
    first_line: int
    """The number of the line, from 1, in which it begins."""


class RecordEnds:
    """Finds the ends of records in text that arrives piece by piece; one end is the place after a newline.

    With a delimiter, text in quotes may hold newlines, as CSV has it: a quote at the beginning of a field opens, the
    next one closes, two in a row inside stand for one. A quote in the middle of a field that is not quoted is text.
    """

    def __init__(self, delimiter: str | None = None) -> None:
        self._opens_after = (_NEWLINE, _RETURN, ord(delimiter)) if delimiter else None
        self._last_byte = _NEWLINE
        self._closed_last = False
        self.is_inside = False
        """Whether what has been seen ends inside quotes."""

    def find(self, piece: Bytes) -> Places:
        """Return where records end in the next piece, counted from its beginning."""
        if not piece.size:
            return np.empty(0, np.int64)
        newlines = np.flatnonzero(piece == _NEWLINE)
        if self._opens_after is not None:
            turns, begun_inside = self._turns(piece, np.flatnonzero(piece == _QUOTE)), self.is_inside
            self.is_inside = begun_inside ^ bool(len(turns) % 2)
            outside = (np.searchsorted(turns, newlines) % 2 == 0) != begun_inside
            newlines = newlines[outside]
            self._closed_last = bool(len(turns) and not self.is_inside and turns[-1] == piece.size - 1)
        self._last_byte = int(piece[-1])
        return newlines + 1

    def _turns(self, piece: Bytes, quotes: Places) -> Places:
        """Return the quotes that open or close."""
        if not len(quotes):
            return quotes
        before = np.where(quotes > 0, piece[quotes - 1], self._last_byte)
        at_begin = np.isin(before, np.array(self._opens_after))
        after_quote = before == _QUOTE
        if quotes[0] == 0:
            after_quote[0] = self._closed_last
        # Most files hold only quotes that open and close in turn: then no quote has to be looked at one by one.
        opening = slice(1 if self.is_inside else 0, None, 2)
        if bool((at_begin[opening] | after_quote[opening]).all()):
            return quotes
        turns = []
        inside, closed = self.is_inside, -1 if self._closed_last else -2
        for quote, begins in zip(quotes.tolist(), at_begin.tolist(), strict=True):
            if inside:
                inside, closed = False, quote
            elif begins or closed == quote - 1:
                inside = True
            else:
                continue
            turns.append(quote)
        return np.array(turns, np.int64)


def split(
    pieces: Iterable[bytes], name: str, *, start: int, line: int, delimiter: str | None, target: int
) -> Iterator[Stretch]:
    """Cut text into stretches of about `target` bytes.

    Args:
        pieces: The text from `start` on.
        name: What the file is called in errors.
        start: Where the text begins in the file.
        line: The number of the line it begins with.
        delimiter: What is between fields, if newlines may stand in quotes; else `None`.
        target: How many bytes a stretch has, at least, except the last one.

    Raises:
        InvalidInputError: If a record is too long, or a quote never closes.
    """
    ends = RecordEnds(delimiter)
    begin, rows, lines = start, 0, line
    stretch_line = record_line = line
    record, place, last = start, start, _NEWLINE
    for piece in pieces:
        data = np.frombuffer(piece, np.uint8)
        newlines = np.flatnonzero(data == _NEWLINE)
        found = ends.find(data)
        absolute = found + place
        filled = _are_filled(data, found, absolute, record, last)
        numbers = lines + np.searchsorted(newlines, found)  # lines that begin at each end
        counted = np.cumsum(filled)
        taken = 0
        while len(absolute) and absolute[-1] - begin >= target:
            cut = int(np.searchsorted(absolute, begin + target))
            if rows + counted[cut] - taken:
                yield Stretch(begin, int(absolute[cut]), int(rows + counted[cut] - taken), stretch_line)
            taken, rows = int(counted[cut]), 0
            begin, stretch_line = int(absolute[cut]), int(numbers[cut])
        if len(absolute):
            rows += int(counted[-1]) - taken
            record, record_line = int(absolute[-1]), int(numbers[-1])
        place, lines, last = place + len(piece), lines + len(newlines), int(data[-1]) if len(piece) else last
        if place - record > LONGEST_RECORD:
            raise _endless(name, record_line, ends.is_inside)
    if ends.is_inside:
        raise _endless(name, record_line, True)
    if place > record and not (place - record == 1 and last == _RETURN):
        rows += 1  # the last line has no newline
    if rows:
        yield Stretch(begin, place, rows, stretch_line)


def _are_filled(data: Bytes, found: Places, absolute: Places, record: int, last: int) -> npt.NDArray[np.bool_]:
    """Tell which records hold more than the end of a line."""
    lengths = np.diff(absolute, prepend=record)
    before: Bytes = np.where(found >= 2, data[np.maximum(found - 2, 0)], last)
    filled: npt.NDArray[np.bool_] = (lengths > 2) | ((lengths == 2) & (before != _RETURN))
    return filled


def _endless(name: str, line: int, is_inside: bool) -> InvalidInputError:
    why = "a quoted value never ends" if is_inside else f"the line is longer than {LONGEST_RECORD >> 20} MiB"
    return InvalidInputError(f"{name}, line {line}: {why}. Correct the file there, or check that it is of this format.")
