"""BOHB: Hyperband's brackets, filled by a model instead of by chance."""

from __future__ import annotations

import math
import random
from typing import ClassVar

import numpy as np

from cargobike.core.records import Direction, Params, Trial
from cargobike.search.models.contrast import Contrast
from cargobike.search.models.sampler import RandomSampler
from cargobike.search.models.standing import LAST, loss_of
from cargobike.search.optimizers.asha import Variant
from cargobike.search.optimizers.hyperband import Hyperband
from cargobike.search.optimizers.sobol import Sobol
from cargobike.search.spaces.encoding import Encoding, Floats
from cargobike.search.spaces.space import Searchspace

_CANDIDATES = 24
_GOOD_SHARE = 0.15
"""Of all trials with a score, so many count as good, if that many got far enough; and at most half of those."""


class ModelSampler(RandomSampler):
    """Suggests what looks like the trials that were good after the longest training that enough trials got to.

    Trials that never got that far count as bad: they were not good enough, they failed, or they still run. As long as
    all trials got equally far, which is so for a function that does not report, this is TPE.

    Args:
        random_share: How often it takes a Sobol point nevertheless, in case short training misleads.
        startup: How many trials a level of training needs before it is believed.
    """

    def __init__(self, random_share: float = 0.1, startup: int = 8) -> None:
        self.random_share = random_share
        self.startup = startup

    def setup(self, space: Searchspace, *, direction: Direction, rng: random.Random) -> None:
        """Start afresh."""
        self._search = Sobol()
        self._search.setup(space, num_trials=None, direction=direction, seed=rng.getrandbits(32))
        self._search.initialize()
        self._direction = direction
        self._encoding = Encoding(space)
        self._generator = np.random.default_rng(rng.getrandbits(64))
        self._levels: dict[int, Contrast] = {}
        self._rows = np.empty((64, self._encoding.width))
        self._highest = np.zeros(64, dtype=np.int64)
        self._index: dict[str, int] = {}

    def suggest(self) -> Params | None:
        """Return what the model of the highest level that has enough trials likes best, else a Sobol point."""
        params = self._modelled() or super().suggest()
        if params is not None:
            self._note(params, self._encoding.row(params), 0)
        return params

    def observe(self, trial: Trial, resource: int, value: float) -> None:
        """Learn what a trial had reached at a level."""
        row = self._encoding.try_row(trial.params)
        if row is not None:
            self._note(trial.params, row, resource)
            contrast = self._levels.setdefault(resource, Contrast(self._encoding))
            contrast.learn(row, (trial.violation, loss_of(value, self._direction)) if math.isfinite(value) else LAST)

    def _note(self, params: Params, row: Floats, level: int) -> None:
        """Remember up to which level a trial is known, 0 for one that was only suggested."""
        index = self._index.setdefault(repr(params), len(self._index))
        if index == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
            self._highest = np.concatenate([self._highest, np.zeros_like(self._highest)])
        self._rows[index] = row
        self._highest[index] = max(self._highest[index], level)

    def _modelled(self) -> Params | None:
        ready = [level for level, contrast in self._levels.items() if len(contrast) >= self.startup]
        if not ready or (len(self._levels) > 1 and self._generator.random() < self.random_share):
            return None
        contrast = self._levels[max(ready)]
        known = len(self._index)
        below = self._rows[:known][self._highest[:known] < max(ready)]
        lower = int((self._highest[:known] > 0).sum()) - len(contrast)
        good = max(1, min(math.ceil(_GOOD_SHARE * (len(contrast) + lower)), len(contrast) // 2))
        for row in contrast.candidates(_CANDIDATES, below, self._generator, good=good):
            params = self._encoding.params(row)
            if self._search._remember(params):
                return params
        return None


class BOHB(Hyperband):
    """Asynchronous Hyperband whose new trials come from a model of those that did well.

    Use it for functions that report and take long: short training of many trials finds the region, long training
    of few confirms it. With fewer trials than some dozen the model has no say, and it is Hyperband.

    Args:
        reduction_factor: One in so many goes on from each rung.
        resource_min: Where the first rung of bracket 0 is; see `ASHA` for the unit.
        resource_max: Where the function ends; learned from the first trial that completes if not given.
        variant: `"promotion"`, `"stopping"`, or `"auto"`: promotion if the function saves checkpoints.
        random_share: How often a new trial is not left to the model, in case short training misleads it.
    """

    name: ClassVar[str] = "bohb"

    def __init__(
        self,
        reduction_factor: float = 3,
        resource_min: int = 1,
        resource_max: int | None = None,
        *,
        variant: Variant = "auto",
        random_share: float = 0.1,
    ) -> None:
        super().__init__(
            reduction_factor, resource_min, resource_max, variant=variant, sampler=ModelSampler(random_share)
        )
        self.random_share = random_share
