"""What one rank reads, in order: stretches of an epoch as visits to windows, and the groups that each needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cargobike.data.loading.order import Order, Piece
from cargobike.data.loading.shares import Stretch

_FEW_ROWS: Final = 4096


class Visit(NamedTuple):
    """Rows `begin` to `end` of a window, counted from its first one, and the pieces that they lie in."""

    window: int
    begin: int
    end: int
    pieces: tuple[Piece, ...]


def visits(order: Order, stretches: Iterable[Stretch]) -> Iterator[Visit]:
    """Yield which windows to visit for some positions of an epoch, in order.

    Of a window of which only few rows are wanted, as at the seam after a change of the world size, only those groups
    are read that have some of them.
    """
    for first, last in stretches:
        position = first
        while position < last:
            window = order.window_at(position)
            begin, end = order.bounds(window)
            stop = min(end, last)
            pieces = tuple(order.pieces(window))
            if stop - position < min(_FEW_ROWS, end - begin):
                pieces = _needed(order, window, pieces, position - begin, stop - begin)
            yield Visit(window, position - begin, stop - begin, pieces)
            position = stop


def _needed(order: Order, window: int, pieces: tuple[Piece, ...], begin: int, end: int) -> tuple[Piece, ...]:
    ends = np.cumsum([piece.stop - piece.start for piece in pieces])
    within = order.within(window)
    places = np.arange(begin, end) if within is None else within[begin:end]
    return tuple(pieces[number] for number in np.unique(np.searchsorted(ends, places, side="right")))


def rows_of(order: Order, visit: Visit, bases: dict[int, int]) -> NDArray[np.int64] | slice:
    """Return where the rows of a visit are, if the rows of each group begin at its base."""
    if not order.is_shuffled:
        (piece,) = visit.pieces
        base = bases[piece.group] + piece.start
        return slice(base + visit.begin, base + visit.end)
    every = [
        np.arange(piece.start + bases[piece.group], piece.stop + bases[piece.group])
        if piece.group in bases
        else np.zeros(piece.stop - piece.start, np.int64)  # a group that this visit has no rows of
        for piece in order.pieces(visit.window)
    ]
    return order.mixed(visit.window, np.concatenate(every))[visit.begin : visit.end]
