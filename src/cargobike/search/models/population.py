"""A population that trains side by side: its places, and who stands where among those of the same age.

However large the population is, noting a score and asking for a place costs next to nothing.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Iterator, Sequence

from cargobike.core.records import Params

Score = tuple[int, float, int]
"""Whether it is no number, the loss, and the number of the trial: the smallest is the best, and no two are equal."""


class Slot:
    """A place in the population: who holds it, and how far that trial got.

    Args:
        index: Which place.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.has_begun = False
        self.is_over = False
        self.is_waiting = False
        self.has_checkpoint = False
        self.has_failed = False
        self.generation = 0
        self.number: int | None = None
        self.params: Params = {}
        self.age = 0
        self.born_at = 0

    @property
    def can_be_copied(self) -> bool:
        """Whether its trial still trains, and has something to go on from."""
        return self.has_checkpoint and not self.is_over


class Ranking:
    """The scores of slots at one age, best first."""

    def __init__(self) -> None:
        self._scores: dict[int, Score] = {}
        self._order: list[tuple[Score, int]] = []

    def __len__(self) -> int:
        return len(self._order)

    def note(self, index: int, score: Score) -> None:
        """Note the score of a slot, in place of the one that it had."""
        before = self._scores.get(index)
        if before is not None:
            del self._order[bisect.bisect_left(self._order, (before, index))]
        self._scores[index] = score
        bisect.insort(self._order, (score, index))

    def is_among_last(self, index: int, count: int) -> bool:
        """Tell whether a slot is one of the `count` worst."""
        score = self._scores.get(index)
        return score is not None and bisect.bisect_left(self._order, (score, index)) >= len(self._order) - count

    def best(self, count: int | None = None) -> Iterator[int]:
        """Yield the best slots, `count` of them or all."""
        return (index for _, index in itertools.islice(self._order, count))


class Waiting:
    """The slots whose trials wait for their turn, the youngest first.

    Args:
        slots: All slots, each at its index.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self._heap: list[tuple[int, int]] = []

    def add(self, slot: Slot) -> None:
        """Let a slot wait, until its `is_waiting` is taken back."""
        slot.is_waiting = True
        heapq.heappush(self._heap, (slot.age, slot.index))

    def youngest(self) -> Slot | None:
        """Return the slot whose turn it is, the first one among equals; `None` if no slot waits."""
        while self._heap:
            age, index = self._heap[0]
            slot = self._slots[index]
            if slot.is_waiting and slot.age == age:
                return slot
            heapq.heappop(self._heap)
        return None
