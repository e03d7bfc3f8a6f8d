"""Pieces of a text to replace, by the positions that Python's own parser gives: lines from 1, columns in bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Place = tuple[int, int]
"""A line, from 1, and a column in it, in bytes of UTF-8."""


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """What stands between two places becomes another text."""

    start: Place
    end: Place
    text: str


def edited(source: str, edits: Iterable[Edit]) -> str:
    """Return a text with its edits made; one that lies inside of another is left out, since its place is gone."""
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    pieces, done = [], 0
    for edit in sorted(set(edits), key=_turn):
        begin, end = (starts[line - 1] + column for line, column in (edit.start, edit.end))
        if begin < done:
            continue
        pieces += [data[done:begin], edit.text.encode()]
        done = end
    return b"".join([*pieces, data[done:]]).decode()


def _turn(edit: Edit) -> tuple[Place, bool, Place]:
    """Sort by place: what is put before a piece, then the piece, a longer one before those inside it."""
    return edit.start, edit.end != edit.start, (-edit.end[0], -edit.end[1])
