"""BOHB: Hyperband's brackets, filled by a model instead of by chance."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, ClassVar

from cargobike.core.records import Direction, Params, Trial
from cargobike.search.models.sampler import RandomSampler
from cargobike.search.optimizers.asha import Variant
from cargobike.search.optimizers.hyperband import Hyperband
from cargobike.search.optimizers.sobol import Sobol
from cargobike.search.spaces.space import Searchspace

if TYPE_CHECKING:
    from cargobike.search.models.levels import LevelModel

_Observation = tuple[Trial, int, float]
"""What a trial had reached after how much training."""


class ModelSampler(RandomSampler):
    """Suggests what looks like the trials that were good after the longest training that enough trials got to.

    Trials that never got that far count as bad: they were not good enough, they failed, or they still run. As long as
    all trials got equally far, which is so for a function that does not report, this is TPE. Before there is enough
    to learn from, it suggests Sobol points.

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
        self._space, self._direction, self._seed = space, direction, rng.getrandbits(64)
        self._early: list[Params | _Observation] = []
        self._observed = 0
        self._model: LevelModel | None = None

    def suggest(self) -> Params | None:
        """Return what the model of the highest level that has enough trials likes best, else a Sobol point."""
        liked = model.candidates() if (model := self._model_if_useful()) is not None else ()
        params = next((params for params in liked if self._search._remember(params)), None) or super().suggest()
        if params is None:
            return None
        if model is not None:
            model.note(params)
        else:
            self._early.append(params)
        return params

    def observe(self, trial: Trial, resource: int, value: float) -> None:
        """Learn what a trial had reached at a level."""
        self._observed += 1
        if self._model is not None:
            self._model.learn(trial, resource, value)
        else:
            self._early.append((copy.copy(trial), resource, value))

    @property
    def _useful_from(self) -> int:
        """How many observations there must be, of whatever level, before the model can have anything to say."""
        return self.startup

    def _model_if_useful(self) -> LevelModel | None:
        """Return the model, made when there is enough to learn from: a search of a few trials does without NumPy."""
        if self._model is None and self._observed >= self._useful_from:
            self._model = self._make_model()
            for early in self._early:
                if isinstance(early, dict):
                    self._model.note(early)
                else:
                    self._model.learn(*early)
            self._early.clear()
        return self._model

    def _make_model(self) -> LevelModel:
        # NumPy takes longer to load than all the rest that the first trial of an experiment needs.
        from cargobike.search.models.levels import LevelModel  # noqa: PLC0415

        return LevelModel(self._space, self._direction, self._seed, self.random_share, self.startup)


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
