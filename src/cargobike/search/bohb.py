"""BOHB: Hyperband's brackets, filled by a model instead of by chance."""

from __future__ import annotations

import math
import random
from typing import ClassVar

import numpy as np

from cargobike.core.records import Direction, Params, Trial
from cargobike.search.asha import Variant
from cargobike.search.contrast import Contrast
from cargobike.search.encoding import Encoding, Floats
from cargobike.search.hyperband import Hyperband
from cargobike.search.sampler import RandomSampler
from cargobike.search.space import Searchspace
from cargobike.search.standing import LAST, loss_of

_CANDIDATES = 24


class ModelSampler(RandomSampler):
    """Suggests what looks like the trials that were good after the longest training that enough trials got to.

    There is a model for each level of training at which trials are compared. Whatever was suggested and has not been
    seen at any level counts as bad: it is still running, or it failed.

    Args:
        random_share: How often it draws at random nevertheless, in case short training misleads.
        startup: How many trials a level needs before its model is asked; by default one more than there are
            parameters, and 6 at least.
    """

    def __init__(self, random_share: float = 0.2, startup: int | None = None) -> None:
        self.random_share = random_share
        self.startup = startup

    def setup(self, space: Searchspace, *, direction: Direction, rng: random.Random) -> None:
        """Start afresh."""
        super().setup(space, direction=direction, rng=rng)
        self._direction = direction
        self._encoding = Encoding(space)
        self._generator = np.random.default_rng(rng.getrandbits(64))
        self._needed = self.startup or max(6, len(space) + 1)
        self._levels: dict[int, Contrast] = {}
        self._pending: dict[str, Floats] = {}

    def suggest(self) -> Params | None:
        """Return what the model of the highest level that has enough trials likes best, else a random draw."""
        params = None
        is_random = self._generator.random() < self.random_share
        ready = [level for level, contrast in self._levels.items() if len(contrast) >= self._needed]
        if ready and not is_random:
            params = self._modelled(self._levels[max(ready)])
        params = params or super().suggest()
        if params is not None:
            self._pending[repr(params)] = self._encoding.row(params)
        return params

    def observe(self, trial: Trial, resource: int, value: float) -> None:
        """Learn what a trial had reached at a level."""
        row = self._encoding.try_row(trial.params)
        if row is None:
            return
        self._pending.pop(repr(trial.params), None)
        contrast = self._levels.setdefault(resource, Contrast(self._encoding))
        contrast.learn(row, (0.0, loss_of(value, self._direction)) if math.isfinite(value) else LAST)

    def _modelled(self, contrast: Contrast) -> Params | None:
        for row in contrast.candidates(_CANDIDATES, self._pending.values(), self._generator, together=True):
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
        random_share: How often a new trial is drawn at random nevertheless.
    """

    name: ClassVar[str] = "bohb"

    def __init__(
        self,
        reduction_factor: float = 3,
        resource_min: int = 1,
        resource_max: int | None = None,
        *,
        variant: Variant = "auto",
        random_share: float = 0.2,
    ) -> None:
        super().__init__(
            reduction_factor, resource_min, resource_max, variant=variant, sampler=ModelSampler(random_share)
        )
