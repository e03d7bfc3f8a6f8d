"""Which rows of an epoch each rank gets: a stretch of what is left, so that ranks do not decode the same groups.

All ranks take the same number of steps, else those that are done would leave the others waiting in their collectives.
What is left after some steps follows from how the rows were shared until then. So it can be shared anew among any
number of ranks, and no row is lost or seen twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, get_args

Last = Literal["keep", "drop", "pad"]
LASTS: Final[tuple[str, ...]] = get_args(Last)

Stretch = tuple[int, int]
"""Positions of an epoch: the first one, and that after the last one."""


class Sharing(NamedTuple):
    """How rows are shared: among how many ranks, in batches of how many rows, and what becomes of the rest.

    - `keep`: every row is seen once; the last batch of a rank has fewer rows. Where that would leave a rank without
      any, the batch before it gives one up; batches of one row take in one more instead.
    - `drop`: every batch is full; the rows at the end of the order that make no full batch for every rank are left out.
    - `pad`: every batch is full; the last batch of a rank repeats its own rows.
    """

    world_size: int
    batch_size: int
    last: Last = "keep"

    def steps(self, rows: int) -> int:
        """Return how many batches every rank gets.

        Example:
            >>> [Sharing(2, 4, last).steps(17) for last in ("keep", "drop", "pad")]
            [3, 2, 3]
        """
        each = self.world_size * self.batch_size
        if self.last == "drop":
            return rows // each
        if self.last == "keep" and self.batch_size == 1:
            return max(rows // self.world_size, min(rows, 1))
        return -(-rows // each)

    def share(self, rows: int, rank: int) -> Stretch:
        """Return which of the rows are a rank's, before any step."""
        if self.last == "drop":
            each = self.steps(rows) * self.batch_size
            return rank * each, (rank + 1) * each
        return rows * rank // self.world_size, rows * (rank + 1) // self.world_size

    def taken(self, rows: int, rank: int, steps: int) -> int:
        """Return how many rows of its share a rank has seen after some steps."""
        begin, end = self.share(rows, rank)
        own, all_steps = end - begin, self.steps(rows)
        if steps >= all_steps:
            return own
        taken = min(steps * self.batch_size, own)
        if self.last == "keep" and steps == all_steps - 1 and taken == own and own > 1:
            return own - 1  # else nothing would be left for the last step
        return taken


class Stage(NamedTuple):
    """Steps that were taken while rows were shared in one way."""

    sharing: Sharing
    steps: int


def left_after(rows: int, stages: Iterable[Stage]) -> list[Stretch]:
    """Return the positions of an epoch that no rank has seen, in order.

    Example:
        >>> left_after(10, [Stage(Sharing(2, 2), 1)])
        [(2, 5), (7, 10)]
    """
    left = [(0, rows)] if rows else []
    for sharing, steps in stages:
        if not steps:
            continue
        count = length(left)
        kept: list[Stretch] = []
        end = 0
        for rank in range(sharing.world_size):
            begin, end = sharing.share(count, rank)
            kept += part_of(left, begin + sharing.taken(count, rank, steps), end)
        if steps < sharing.steps(count):
            kept += part_of(left, end, count)
        left = joined(kept)
    return left


def length(stretches: Iterable[Stretch]) -> int:
    """Return how many positions there are in all."""
    return sum(end - begin for begin, end in stretches)


def part_of(stretches: Sequence[Stretch], begin: int, end: int) -> list[Stretch]:
    """Return those positions that come from the `begin`-th to before the `end`-th.

    Example:
        >>> part_of([(0, 4), (10, 14)], 3, 6)
        [(3, 4), (10, 12)]
    """
    part = []
    for low, high in stretches:
        first, last = low + max(begin, 0), min(low + end, high)
        if first < last:
            part.append((first, last))
        begin, end = begin - (high - low), end - (high - low)
    return part


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the same positions with neighbours made one."""
    whole: list[Stretch] = []
    for begin, end in stretches:
        if whole and whole[-1][1] == begin:
            whole[-1] = (whole[-1][0], end)
        elif begin < end:
            whole.append((begin, end))
    return whole
