"""The order of an epoch: a pure function of the seed, the epoch and the groups, whatever the world size.

A shuffled epoch is made in three steps. The groups are put in an order in which neighbours come from distant parts of
the source, since what lies side by side is often alike: each is drawn from the next of `mix` equal stretches of it.
This sequence is cut into windows of about `mix` groups, at rows and not at groups, so that for 2, 4 and 8 ranks a
rank's share begins where a window does: two neighbours both read at most the one group that lies across their seam.
Within a window every row is equally likely to come next. Only the groups of one window have to be in memory.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MIX_BYTES: Final = 16 << 20
MOST_MIXED: Final = 64

_GROUPS, _WINDOW = 0, 1  # what a stream of random numbers is for


class Piece(NamedTuple):
    """Rows of one group that belong to a window: from `start` to before `stop`, as they lie in the group."""

    group: int
    start: int
    stop: int


def usual_mix(sizes: Sequence[int]) -> int:
    """Return how many groups to mix: those that 16 MiB hold, at least two.

    Example:
        >>> usual_mix([50_000_000] * 9), usual_mix([1 << 20] * 9), usual_mix([100] * 9)
        (2, 16, 64)
    """
    mean = sum(sizes) / len(sizes) if sizes else 1
    return int(min(max(MIX_BYTES // max(mean, 1), 2), MOST_MIXED))


class Order:
    """Which row of which group comes at each position of an epoch.

    Args:
        rows: How many rows each group has.
        shuffle: Whether rows are shuffled; otherwise they come as they lie in the source.
        seed: What the order is drawn from.
        epoch: Each has an order of its own.
        mix: How many groups are mixed with each other.

    Attributes:
        mix: How many groups are mixed.
        rows: How many rows there are.
        windows: How many windows there are.
        most_groups: How many groups the window has that has most.

    Example:
        >>> order = Order([2, 3], shuffle=False, seed=0, epoch=0, mix=2)
        >>> order.windows, order.pieces(1)
        (2, [Piece(group=1, start=0, stop=3)])
    """

    def __init__(self, rows: Sequence[int], *, shuffle: bool, seed: int, epoch: int, mix: int) -> None:
        self.mix = mix
        self._rows = rows
        self._shuffle = shuffle
        self._key = (seed, epoch)
        self._sequence = self._spread(mix) if shuffle else np.arange(len(rows))
        ends = np.cumsum(np.asarray(rows, np.int64)[self._sequence]) if len(rows) else np.zeros(0, np.int64)
        self._ends: list[int] = ends.tolist()
        self.rows = self._ends[-1] if self._ends else 0
        if shuffle:
            count = number_of_windows(len(rows), mix)
            self._cuts = sorted({self.rows * index // count for index in range(count + 1)})
        else:
            self._cuts = [0, *self._ends]
        self.windows = len(self._cuts) - 1
        first = np.searchsorted(ends, self._cuts[:-1], side="right")
        last = np.searchsorted(ends, np.asarray(self._cuts[1:]) - 1, side="right")
        self.most_groups = int((last - first).max() + 1) if self.windows > 0 else 0

    def window_at(self, position: int) -> int:
        """Return which window a position of the epoch is in."""
        return bisect.bisect_right(self._cuts, position) - 1

    def bounds(self, window: int) -> tuple[int, int]:
        """Return the first position of a window, and that after its last one."""
        return self._cuts[window], self._cuts[window + 1]

    def pieces(self, window: int) -> list[Piece]:
        """Return which rows of which groups a window consists of."""
        begin, end = self.bounds(window)
        pieces = []
        place = bisect.bisect_right(self._ends, begin)
        while begin < end:
            group = int(self._sequence[place])
            first = self._ends[place] - self._rows[group]
            stop = min(end, self._ends[place])
            pieces.append(Piece(group, begin - first, stop - first))
            begin, place = stop, place + 1
        return pieces

    def within(self, window: int) -> NDArray[np.int64] | None:
        """Return the order of a window's rows, counted through its pieces; `None` if they come as they lie."""
        if not self._shuffle:
            return None
        begin, end = self.bounds(window)
        return self.mixed(window, np.arange(end - begin))

    def mixed(self, window: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Put the rows of a window, one number each, into their order in place, if they are shuffled."""
        if self._shuffle:
            self._random(_WINDOW, window).shuffle(rows)
        return rows

    @property
    def sequence(self) -> list[int]:
        """The groups in the order in which they come, for those who take each whole."""
        return [int(group) for group in self._sequence]

    @property
    def is_shuffled(self) -> bool:
        """Whether rows come in another order than they lie in."""
        return self._shuffle

    def _spread(self, mix: int) -> NDArray[np.int64]:
        """Return the groups in an order in which each run of `mix` neighbours comes from all over the source."""
        random = self._random(_GROUPS, 0)
        count = len(self._rows)
        bounds = [count * number // mix for number in range(mix + 1)]
        stretches = [random.permutation(np.arange(*ends)) for ends in itertools.pairwise(bounds)]
        turns = np.full((-(-count // mix), mix), -1)
        for column, number in enumerate(random.permutation(mix)):
            turns[: len(stretches[number]), column] = stretches[number]
        flat = turns.reshape(-1)
        return flat[flat >= 0]

    def _random(self, purpose: int, number: int) -> np.random.Generator:
        seed, epoch = self._key
        return np.random.Generator(np.random.PCG64([seed, epoch, purpose, number]))


def number_of_windows(groups: int, mix: int) -> int:
    """Return how many windows there are: a multiple of 8, 4 or 2 where the groups suffice, so that ranks share none.

    Example:
        >>> number_of_windows(40, 2), number_of_windows(40, 4), number_of_windows(9, 2), number_of_windows(3, 64)
        (24, 8, 4, 1)
    """
    if mix <= 1:
        return groups
    wanted = -(-groups // mix)
    multiple = next((number for number in (8, 4, 2) if wanted >= number), 1)
    return (2 * wanted + multiple) // (2 * multiple) * multiple
