"""Grid search: every combination once, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from cargobike.core.records import Params, Trial
from cargobike.core.values.kinds import read_mapping
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.space import Searchspace


class GridSearch(AbstractOptimizer):
    """Tries every combination of the space once that keeps its constraints, the last parameter changing fastest.

    Args:
        counts: How many values to take of a range, `{"lr": 5}`; a continuous range needs this or `points` in
            its specification.
    """

    name: ClassVar[str] = "gridsearch"
    learns: ClassVar[bool] = False
    handles_objectives: ClassVar[bool] = True

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self.counts = {} if counts is None else read_mapping("counts", counts, "{'lr': 5}")

    def count_trials(self, space: Searchspace) -> int | None:
        """Return the number of combinations; raises `SpaceError` if there is none, or a range has no count."""
        return space.grid_size(self.counts)

    def initialize(self) -> None:
        """Go back to the first combination; raises `SpaceError` if a continuous range has no count."""
        self._left: Iterator[Params] = self.space.grid(self.counts)
        self._suggested = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return the next combination, or `None` after the last."""
        if self.num_trials is not None and self._suggested >= self.num_trials:
            return None
        self._suggested += 1
        return next(self._left, None)
