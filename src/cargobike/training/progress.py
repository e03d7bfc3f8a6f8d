"""How far a loop has come in its data: which epoch, and how much of it is in the weights.

Ranks go in step and deal an epoch's order out in turns, so what all of them have taken after some batches is always a
beginning of that order. An attempt that goes on in the middle of an epoch leaves that beginning out and deals out the
rest, with as many ranks as it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")


class Taken(NamedTuple):
    """What one attempt has taken of an epoch: so many ranks, so many items each."""

    world_size: int
    items: int


def skip_taken(order: Sequence[Item], taken: Sequence[Taken]) -> Sequence[Item]:
    """Return the rest of an epoch's order.

    Example:
        >>> skip_taken("abcdefgh", [Taken(2, 2), Taken(3, 1)])
        'h'
    """
    return order[count_taken(taken) :]


def count_taken(taken: Sequence[Taken]) -> int:
    """Return how many items of an epoch's order are taken; with samples that were taken twice, more than there are."""
    return sum(each.world_size * each.items for each in taken)


@dataclass(slots=True)
class Progress:
    """Counts the batches that a loader gives out, and those that are in the weights.

    A batch is in the weights when the optimizer has stepped after it was given out; while no optimizer is seen to step,
    when it was given out. A pass that is left early is over, unless nothing of it was trained: then it was only a look.

    Attributes:
        epoch: The epoch of the pass that is under way, else of the next one.
        taken: What earlier attempts have taken of this epoch.
        expects_steps: Whether an optimizer was prepared together with the loader.
    """

    epoch: int = 0
    taken: tuple[Taken, ...] = ()
    expects_steps: bool = False
    _pass: int = 0
    _is_under_way: bool = False
    _has_stepped: bool = False
    _given: int = 0
    _trained: int = 0
    _is_last: bool = False

    @property
    def next_epoch(self) -> int:
        """The epoch that the next pass draws."""
        return self.epoch + 1 if self._is_under_way else self.epoch

    @property
    def given(self) -> int:
        """How many batches the present pass has given out."""
        return self._given

    def go_to(self, epoch: int, taken: Sequence[Taken] = ()) -> None:
        """Draw this epoch next, without what was taken of it."""
        self.epoch, self.taken = epoch, tuple(taken)
        self._is_under_way = False
        self._reset()

    def begin_pass(self) -> int:
        """Begin to draw an epoch; returns the number of the pass."""
        if self._is_under_way:
            self._move_on()
        self._pass += 1
        self._is_under_way = True
        return self._pass

    def give(self, *, is_last: bool) -> None:
        """Count a batch that is given out."""
        self._given += 1
        self._is_last = is_last

    def step(self) -> None:
        """Note that the optimizer has stepped: what was given out so far is in the weights."""
        self._has_stepped = True
        self._trained = self._given

    def end_pass(self, number: int, *, is_complete: bool) -> None:
        """Note that a pass is over, because it was drawn to its end or because the loop was left."""
        if number != self._pass or not self._is_under_way:
            return  # a later pass has begun, or a state was loaded
        if is_complete or self._trained or not self.expects_steps:
            self._move_on()
        else:
            self._is_under_way = False
            self._reset()

    def position(self) -> tuple[int, int]:
        """Return the epoch in which training stands, and how many of this pass's batches are in the weights."""
        if not self._is_under_way:
            return self.epoch, 0
        done = self._trained if self.expects_steps and self._has_stepped else self._given
        if self._is_last and done == self._given:
            return self.epoch + 1, 0
        return self.epoch, done

    def _move_on(self) -> None:
        self.epoch += 1
        self.taken = ()
        self._is_under_way = False
        self._reset()

    def _reset(self) -> None:
        self._given, self._trained, self._is_last = 0, 0, False
