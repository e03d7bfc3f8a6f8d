"""Models of what was good after how much training: densities, or a Gaussian process where trials just return."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cargobike.core.records import Direction, Params, Trial
from cargobike.search.models.contrast import Contrast
from cargobike.search.models.foresight import Foresight
from cargobike.search.models.improvement import MOST_TRIALS, Improvement
from cargobike.search.models.prospects import MOST_KNOWN, Prospects
from cargobike.search.models.standing import LAST, loss_of, standing
from cargobike.search.spaces.encoding import Encoding, Floats
from cargobike.search.spaces.smooth import is_smooth
from cargobike.search.spaces.space import Searchspace

_CANDIDATES = 24
_GOOD_SHARE = 0.15
"""Of all trials with a score, so many count as good, if that many got far enough; and at most half of those."""


_MOST_RUNNING = 40
"""So many of those that run are kept apart from: a process takes time with the cube of what it is shown."""

_NARROWEST_HALVED = 0.06
"""Least width of a kernel where trials are halved."""


class LevelModel:
    """Densities of good and bad trials for each level of training; the highest that enough trials got to is asked.

    Args:
        space: Where the trials lie.
        direction: `"max"` or `"min"`.
        seed: Decides about draws.
        random_share: How often it has nothing to say, in case short training misleads.
        startup: How many trials a level of training needs before it is believed.
    """

    def __init__(
        self, space: Searchspace, direction: Direction, seed: int, random_share: float = 0.1, startup: int = 8
    ) -> None:
        self._direction = direction
        self._random_share = random_share
        self._startup = startup
        self._encoding = Encoding(space)
        self._generator = np.random.default_rng(seed)
        self._levels: dict[int, Contrast] = {}
        self._rows = np.empty((64, self._encoding.width))
        self._highest = np.zeros(64, dtype=np.int64)
        self._index: dict[str, int] = {}

    def note(self, params: Params) -> None:
        """Note that parameters were suggested: as long as nothing more is known, they count as bad."""
        self._note(params, self._encoding.row(params), 0)

    def learn(self, trial: Trial, resource: int, value: float) -> None:
        """Learn what a trial had reached at a level."""
        row = self._encoding.try_row(trial.params)
        if row is not None:
            self._note(trial.params, row, resource)
            if resource not in self._levels:
                self._levels[resource] = self._make_contrast(trial)
            self._levels[resource].learn(
                row, (trial.violation, loss_of(value, self._direction)) if math.isfinite(value) else LAST
            )

    def _make_contrast(self, trial: Trial) -> Contrast:
        """Return an empty contrast for the level that a trial is the first to get to."""
        return Contrast(self._encoding)

    def _note(self, params: Params, row: Floats, level: int) -> None:
        """Remember up to which level a trial is known, 0 for one that was only suggested."""
        index = self._index.setdefault(repr(params), len(self._index))
        if index == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
            self._highest = np.concatenate([self._highest, np.zeros_like(self._highest)])
        self._rows[index] = row
        self._highest[index] = max(self._highest[index], level)

    def candidates(self) -> Iterator[Params]:
        """Yield parameters that look good, the most promising first; nothing if too little is known."""
        ready = [level for level, contrast in self._levels.items() if len(contrast) >= self._startup]
        if not ready or (len(self._levels) > 1 and self._generator.random() < self._random_share):
            return
        contrast = self._levels[max(ready)]
        known = len(self._index)
        below = self._rows[:known][self._highest[:known] < max(ready)]
        lower = int((self._highest[:known] > 0).sum()) - len(contrast)
        good = max(1, min(math.ceil(_GOOD_SHARE * (len(contrast) + lower)), len(contrast) // 2))
        for row in contrast.candidates(_CANDIDATES, below, self._generator, good=good):
            yield self._encoding.params(row)


class SmoothLevelModel(LevelModel):
    """As `LevelModel`, or a Gaussian process.

    It is a process of final scores in a smooth space, if the function does not report; and a process of what trials are
    foreseen to end with as long as these are few, in any space, if it does.

    Args:
        space: Where the trials lie.
        direction: `"max"` or `"min"`.
        seed: Decides about draws.
        useful_from: So many scores and the process has something to say, or densities about those that wait.
        minds_reports: Whether it is asked about trials that were stopped, which only densities can compare.

    Attributes:
        looks_around: Whether it has nothing to say the next time, where trials are halved.
        foresight: Says what trials will end with, where they are halved.
    """

    foresight: Foresight | None = None

    def __init__(
        self, space: Searchspace, direction: Direction, seed: int, *, useful_from: int, minds_reports: bool
    ) -> None:
        super().__init__(space, direction, seed, random_share=0.0)
        self._useful_from = useful_from
        self._minds_reports = minds_reports
        self.looks_around = False
        self._improvement = Improvement(self._encoding, self._generator) if is_smooth(space) else None
        self._prospects = Prospects(self._encoding, self._generator)
        self._found: Floats | None = None

    def learn(self, trial: Trial, resource: int, value: float) -> None:
        """Learn what a trial had reached at a level."""
        super().learn(trial, resource, value)
        row = self._encoding.try_row(trial.params)
        self._found = None
        if row is not None:
            self._prospects.note(trial.number, row)
        if self._improvement is None or row is None:
            return
        if (self._minds_reports and len(trial.curve)) or len(self._improvement) >= MOST_TRIALS:
            self._improvement = None
        else:
            self._improvement.learn(row, standing(trial, self._direction))

    def _make_contrast(self, trial: Trial) -> Contrast:
        # Halving brings so many trials that the best of them lie close together long before the best place is found.
        is_halved = self._minds_reports and len(trial.curve) > 0
        return Contrast(self._encoding, _NARROWEST_HALVED) if is_halved else super()._make_contrast(trial)

    def favourite(self, choices: Sequence[Params]) -> int | None:
        """Return which of some parameters look most like those that were good after the longest training."""
        ready = [level for level, contrast in self._levels.items() if len(contrast) >= self._useful_from]
        if not ready or not choices:
            return None
        rows = np.array([self._encoding.row(params) for params in choices])
        return int(np.argmax(self._levels[max(ready)].gains(rows)))

    @property
    def foresees(self) -> bool:
        """Whether a process of what trials are foreseen to end with suggests."""
        return self.foresight is not None and self._useful_from < len(self.foresight) <= MOST_KNOWN

    def candidates(self) -> Iterator[Params]:
        """Yield parameters from which most is to be expected, the most promising first."""
        if self._improvement is None:
            if self.looks_around and len(self._levels) > 1:
                return
            if self.foresees:
                found, self._found = self._search(), None
                yield from map(self._encoding.params, found)
            yield from super().candidates()
        elif len(self._improvement) >= self._useful_from:
            for row in self._improvement.candidates(self._running()):
                yield self._encoding.params(row)

    def rather(self, waiting: Mapping[int, float], *, searches: bool) -> int | None:
        """Return which of the trials that wait promises more than a new one, if any does.

        Args:
            waiting: Their numbers, and what it costs to train them to their end, as a multiple of what a new one costs.
            searches: Whether new places are looked for; without, the last ones that were found are compared with.
        """
        assert self.foresight is not None
        if searches:
            self._search()
        return self._prospects.best_of(waiting, self.foresight, self._running())

    def knows(self, trial: int) -> bool:
        """Tell whether a trial can be compared with new places."""
        return self._prospects.knows(trial)

    def promises_more(self, trial: int, price: float) -> bool | None:
        """Tell whether a trial promises more, for its price, than a new one; `None` if too little is known to tell."""
        assert self.foresight is not None
        if not self.knows(trial):
            return None
        return self._prospects.best_of({trial: price}, self.foresight, self._running()) is not None

    def _search(self) -> Floats:
        assert self.foresight is not None
        if self._found is None:
            known = self._rows[: len(self._index)]
            self._found = self._prospects.search(self.foresight, known, self._running())
        return self._found

    def _running(self) -> Floats:
        """Return the rows of trials that run and of which nothing is known; of very many, the latest."""
        known = len(self._index)
        running: Floats = self._rows[:known][self._highest[:known] == 0]
        return running[-_MOST_RUNNING:]
