"""From visits to batches: the loop that runs in the user's thread."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cargobike.core.errors import StoreError
from cargobike.data.loading.ahead import ReadAhead
from cargobike.data.loading.blocks import Blocks, Rows
from cargobike.data.loading.order import Order
from cargobike.data.loading.visits import rows_of


class Taken(NamedTuple):
    """A batch, how many rows it has, and how many of these were handed out before; no batch if no row was left."""

    batch: Any
    rows: int
    repeated: int


def take_batches(
    ahead: ReadAhead, order: Order, blocks: Blocks, sizes: Iterable[tuple[int, int]], *, never_empty: bool
) -> Generator[Taken, None, None]:
    """Yield batches of these sizes; rows that are left out make them smaller.

    Args:
        ahead: Brings groups; the caller closes it.
        order: Says which rows of them come next.
        blocks: Where they are.
        sizes: How many rows each batch has, and how many of these were handed out before.
        never_empty: Whether a batch of which no row could be read repeats an earlier row; other ranks wait for it.
    """
    spare: Any = None
    place = _Place(ahead, order, blocks)
    for size, repeated in sizes:
        batch = blocks.begin_batch(size)
        filled = wanted = 0
        while wanted < size:
            begin, end, passed = place.go_on(size - wanted)
            if begin < end:
                blocks.fill(batch, filled, begin, end)
                filled += end - begin
            wanted += passed
        if filled:
            whole = blocks.finish(batch, filled)
            if never_empty and spare is None:
                spare = blocks.first_row(whole)
            yield Taken(whole, filled, min(repeated, filled))
        elif not never_empty:
            yield Taken(None, 0, 0)
        elif spare is not None:
            yield Taken(blocks.first_row(spare), 1, 1)
        else:
            raise StoreError(
                "No row of this rank's first batch can be read, and the other ranks would wait for it for ever. "
                "Loader.stats.skipped says what was left out."
            )


class _Place:
    """Where in which visit the next row is."""

    def __init__(self, ahead: ReadAhead, order: Order, blocks: Blocks) -> None:
        self._ahead = ahead
        self._order = order
        self._blocks = blocks
        self._at = self._rows = 0
        self._kept: NDArray[np.int64] | None = None
        self._is_inside = False

    def go_on(self, wanted: int) -> tuple[int, int, int]:
        """Return the next entered rows, at most as many as wanted, and how many rows of the epoch were passed."""
        if self._at == self._rows:
            self._enter_next()
        begin = self._at
        end = self._at = min(begin + wanted, self._rows)
        if self._kept is None:
            return begin, end, end - begin
        return int(self._kept[begin]), int(self._kept[end]), end - begin

    def _enter_next(self) -> None:
        if self._is_inside:
            self._ahead.leave()
        visit, bases, bad = self._ahead.visit()
        self._is_inside = True
        rows = rows_of(self._order, visit, bases)
        self._kept = None
        if bad:
            rows, self._kept = _without(rows, bases, bad)
        self._blocks.enter(rows)
        self._at, self._rows = 0, visit.end - visit.begin


def _without(rows: Rows, bases: dict[int, int], bad: dict[int, NDArray[np.bool_]]) -> tuple[Rows, NDArray[np.int64]]:
    """Return the rows that are not bad, and for each row of the visit how many of these come before it."""
    places = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    keep = np.ones(len(places), bool)
    for group, mask in bad.items():
        inside = (places >= bases[group]) & (places < bases[group] + len(mask))
        keep[inside] &= ~mask[places[inside] - bases[group]]
    return places[keep], np.concatenate([[0], np.cumsum(keep)])
