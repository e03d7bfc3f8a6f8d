"""The batches of one rank: how many rows each has, and at which positions of the epoch they are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cargobike.data.loading.shares import Sharing, Stretch, length, part_of


@dataclass(frozen=True)
class Portion:
    """What a rank has still to read of some stretches that are shared among all.

    Attributes:
        left: What was left for all when rows began to be shared in this way.
        sharing: How they are shared.
        rank: Whose portion this is.
        done: How many steps are done.
        until: After which step to end; `None` for the last one.
    """

    left: Sequence[Stretch]
    sharing: Sharing
    rank: int
    done: int = 0
    until: int | None = None

    @property
    def steps(self) -> int:
        """How many batches are still to come."""
        return max(self._end - self.done, 0)

    @property
    def _end(self) -> int:
        every = self.sharing.steps(length(self.left))
        return every if self.until is None else min(self.until, every)

    def worker(self, number: int, workers: int) -> Portion:
        """Return the steps of one of several processes that divide all steps of this rank among them."""
        if workers == 1:
            return self
        every = self.sharing.steps(length(self.left))
        return replace(self, done=max(self.done, every * number // workers), until=every * (number + 1) // workers)

    def after(self, steps: int) -> Portion:
        """Return what is left after some more steps."""
        return replace(self, done=self.done + steps)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield for each batch how many rows it has, and how many of them were handed out before."""
        count = length(self.left)
        taken = self.sharing.taken(count, self.rank, self.done)
        end = self.done + self.steps
        usual = max(min(end, self.sharing.steps(count) - 2) - self.done, 0)  # the last two may differ
        yield from itertools.repeat((self.sharing.batch_size, 0), usual)
        taken += usual * self.sharing.batch_size
        for step in range(self.done + usual, end):
            until = self.sharing.taken(count, self.rank, step + 1)
            repeated = self._repeated() if step == end - 1 else 0
            yield until - taken + repeated, repeated
            taken = until

    def stretches(self) -> list[Stretch]:
        """Return the positions of all rows of these batches, in order."""
        if not self.steps:
            return []
        count = length(self.left)
        begin, end = self.sharing.share(count, self.rank)
        first = begin + self.sharing.taken(count, self.rank, self.done)
        own = part_of(self.left, first, begin + self.sharing.taken(count, self.rank, self._end))
        missing = self._repeated()
        if not missing:
            return own
        again = part_of(self.left, max(begin, end - self.sharing.batch_size), end)
        again = again or part_of(self.left, count - 1, count)
        while missing:
            some = part_of(again, 0, missing)
            own += some
            missing -= length(some)
        return own

    def _repeated(self) -> int:
        """Return how many rows of the last batch are repeated ones: to fill it, or since no other is left."""
        count = length(self.left)
        steps = self.sharing.steps(count)
        if self._end < steps:
            return 0
        begin, end = self.sharing.share(count, self.rank)
        if self.sharing.last == "pad":
            return steps * self.sharing.batch_size - (end - begin)
        return 1 if steps and begin == end else 0
