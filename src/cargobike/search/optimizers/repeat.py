"""Trials of an earlier experiment, once more: the same parameters, the same seeds."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import ClassVar

from cargobike.core.records import Suggestion, Trial
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested


class Repeat(AbstractOptimizer):
    """Suggests what was suggested before; `Trial.info["repeats"]` says which trial each one repeats.

    Args:
        trials: The trials to repeat, in this order.
    """

    name: ClassVar[str] = "repeat"
    handles_objectives: ClassVar[bool] = True

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.repeated = tuple(trials)

    def initialize(self) -> None:
        """Go back to the first one."""
        self._next = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return the next one, or `None` after the last."""
        if self._next >= len(self.repeated):
            return None
        self._next += 1
        past = self.repeated[self._next - 1]
        return Suggestion(params=copy.deepcopy(past.params), seed=past.seed, info={"repeats": past.number})
