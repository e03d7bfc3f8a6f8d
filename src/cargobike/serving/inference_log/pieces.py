"""Which pieces of a log there are: what one process wrote at once, alone in a file or merged with others.

A piece has the name of its writer and a number, and keeps both when files are merged: so a reader can tell which
pieces it has read, wherever they lie by now. Numbers of one writer are mostly read in order, so that sets of them are
kept as a few runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from cargobike.core.errors import StoreError
from cargobike.serving.inference_log.parquet import dropped_in
from cargobike.serving.inference_log.places import LogFile

PIECES: Final = b"pieces"
"""In the metadata of a file that stands for others: the pieces in it, as JSON, in the order of its rows."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """What one process wrote at once: its rows, and how many requests it could not keep before."""

    writer: str
    number: int
    rows: int
    dropped: int = 0


class Pieces(msgspec.Struct, frozen=True):
    """A set of pieces: for each writer the runs of its numbers, ascending, as first and last."""

    runs: dict[str, list[tuple[int, int]]] = {}

    def has(self, writer: str, number: int) -> bool:
        """Tell whether a piece is in it."""
        runs = self.runs.get(writer, [])
        place = bisect_right(runs, number, key=lambda run: run[0]) - 1
        return place >= 0 and number <= runs[place][1]

    def holds(self, other: Pieces) -> bool:
        """Tell whether all pieces of another set are in it."""
        return all(
            (place := bisect_right(self.runs.get(writer, []), first, key=lambda run: run[0]) - 1) >= 0
            and last <= self.runs[writer][place][1]
            for writer, runs in other.runs.items()
            for first, last in runs
        )

    def add(self, writer: str, first: int, last: int) -> None:
        """Add the pieces of a writer from a number to another, in place."""
        runs = self.runs.setdefault(writer, [])
        start = bisect_right(runs, first - 1, key=lambda run: run[1]) if runs else 0
        if start and runs[start - 1][1] >= first - 1:
            start -= 1
        end = start
        while end < len(runs) and runs[end][0] <= last + 1:
            first, last = min(first, runs[end][0]), max(last, runs[end][1])
            end += 1
        runs[start:end] = [(first, last)]

    def add_all(self, other: Pieces) -> None:
        """Add the pieces of another set, in place."""
        for writer, runs in other.runs.items():
            for first, last in runs:
                self.add(writer, first, last)

    def both(self, other: Pieces) -> Pieces:
        """Return the pieces that are in both sets."""
        return self.without(self.without(other))

    def without(self, other: Pieces) -> Pieces:
        """Return the pieces that are not in another set."""
        left: dict[str, list[tuple[int, int]]] = {}
        for writer, runs in self.runs.items():
            for first, last in runs:
                start = first
                for begin, end in other.runs.get(writer, []):
                    if end < start or begin > last:
                        continue
                    if begin > start:
                        left.setdefault(writer, []).append((start, begin - 1))
                    start = end + 1
                if start <= last:
                    left.setdefault(writer, []).append((start, last))
        return Pieces(left)

    def copy(self) -> Pieces:
        """Return a copy that can be changed."""
        return Pieces({writer: list(runs) for writer, runs in self.runs.items()})


def set_of(pieces: Iterable[Piece]) -> Pieces:
    """Return pieces as a set."""
    held = Pieces({})
    for piece in pieces:
        held.add(piece.writer, piece.number, piece.number)
    return held


def pieces_in(file: LogFile, rows: pa.Table, place: str) -> Sequence[Piece]:
    """Return the pieces of a file, in the order of its rows.

    Args:
        file: What its name says.
        rows: What it holds.
        place: What to call it in errors.

    Raises:
        StoreError: If what it says of its pieces cannot be true.
    """
    said = (rows.schema.metadata or {}).get(PIECES)
    if said is None:
        return [Piece(file.writer, file.number, rows.num_rows, dropped_in(rows.schema))]
    try:
        pieces = msgspec.json.decode(said, type=list[Piece])
    except msgspec.DecodeError as error:
        raise StoreError(f"{place} is damaged: what it says of its pieces is not understood ({error}).") from error
    if sum(piece.rows for piece in pieces) != rows.num_rows or any(piece.rows < 0 for piece in pieces):
        raise StoreError(f"{place} is damaged: it has {rows.num_rows} rows, and says otherwise of its pieces.")
    return pieces


def cut(rows: pa.Table, pieces: Iterable[Piece]) -> Iterator[tuple[Piece, pa.Table]]:
    """Yield each piece of a file with its rows."""
    start = 0
    for piece in pieces:
        yield piece, rows.slice(start, piece.rows)
        start += piece.rows
