"""Where multi-fidelity optimizers take new parameters from: at random, or from a model that learns on the way."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from cargobike.core.records import Direction, Params, Trial
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.sobol import Sobol
from cargobike.search.spaces.space import Searchspace

if TYPE_CHECKING:
    from cargobike.search.models.foresight import Foresight
    from cargobike.search.models.levels import LevelModel, SmoothLevelModel

_Observation = tuple[Trial, int, float]
"""What a trial had reached after how much training."""

_LOOKS_AROUND_EVERY = 3
"""One new trial in so many is left to Sobol points where trials are halved."""
_LOOKS_AROUND_RARELY = 6
"""The same while a Gaussian process suggests, which looks around by itself."""
_STARTUP = 4
"""So many scores and a Gaussian process has something to say, or densities about those that wait."""


class Sampler(Protocol):
    """Suggests parameters, and is shown how good they were after how much training.

    Calls never overlap. A sampler is deterministic in the `rng` it was given and the calls it saw, and treats `"min"`
    and the negated objective with `"max"` alike.
    """

    def setup(self, space: Searchspace, *, direction: Direction, rng: random.Random) -> None:
        """Start afresh; called once before anything else."""

    def suggest(self) -> Params | None:
        """Return parameters for a new trial, or `None` if there is nothing new to try any more."""

    def observe(self, trial: Trial, resource: int, value: float) -> None:
        """Learn what a trial had reached after so much training; `value` may be NaN or infinite.

        Called once for each level of training at which the optimizer compared trials, and once more, with all of its
        training, for a trial that completed.
        """


class RandomSampler:
    """Draws from the space, without repetition where it is finite."""

    def setup(self, space: Searchspace, *, direction: Direction, rng: random.Random) -> None:
        """Start afresh."""
        self._search = RandomSearch()
        self._search.setup(space, num_trials=None, direction=direction, seed=rng.getrandbits(32))
        self._search.initialize()

    def suggest(self) -> Params | None:
        """Return a draw that was not made before, `None` when there is none left."""
        params = self._search.get_suggestion()
        return params if isinstance(params, dict) else None

    def observe(self, trial: Trial, resource: int, value: float) -> None:
        """Take no notice."""


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


class AutoSampler(ModelSampler):
    """A model of densities; in a smooth space, and for a function that does not report, a Gaussian process.

    Args:
        minds_reports: Whether it is asked about trials that were stopped.

    Attributes:
        foresight: Says what trials will end with, where they are halved; `None`: densities alone are asked.
        ends_first: So many trials must have ended before a Gaussian process is asked for new ones.
    """

    foresight: Foresight | None = None
    ends_first: int = 0

    def __init__(self, *, minds_reports: bool = True) -> None:
        super().__init__()
        self._minds_reports = minds_reports

    def setup(self, space: Searchspace, *, direction: Direction, rng: random.Random) -> None:
        """Start afresh."""
        super().setup(space, direction=direction, rng=rng)
        self._suggested = 0

    def suggest(self) -> Params | None:
        """Return in turns what the model likes and, if the function reports, a point where no trial has been."""
        self._suggested += 1
        if self._model is not None:
            model = self._smooth_model
            model.foresight = foresight = self.foresight if self._minds_reports else None
            if foresight is not None and model.foresees:
                knows_little = foresight.ended < self.ends_first
                model.looks_around = knows_little or not self._suggested % _LOOKS_AROUND_RARELY
            else:
                model.looks_around = not self._suggested % _LOOKS_AROUND_EVERY
        return super().suggest()

    @property
    def foresees(self) -> bool:
        """Whether a process of what trials are foreseen to end with suggests."""
        if self.foresight is None or self._model_if_useful() is None:
            return False
        self._smooth_model.foresight = self.foresight
        return self._smooth_model.foresees

    def rather(self, waiting: Mapping[int, float], *, may_start: bool) -> int | None:
        """Return which of the trials that wait promises more than a new one, if any does."""
        if not self.foresees or (may_start and not (self._suggested + 1) % _LOOKS_AROUND_RARELY):
            return None
        return self._smooth_model.rather(waiting, searches=may_start)

    def knows(self, trial: int) -> bool:
        """Tell whether the process can compare a trial with new ones."""
        return self.foresees and self._smooth_model.knows(trial)

    def promises_more(self, trial: int, price: float) -> bool | None:
        """Tell whether a trial promises more, for its price, than a new one; `None` if too little is known to tell."""
        return self._smooth_model.promises_more(trial, price) if self.foresees else None

    @property
    def _useful_from(self) -> int:
        return _STARTUP

    def _make_model(self) -> SmoothLevelModel:
        # As in `ModelSampler`: NumPy must not delay the first trial.
        from cargobike.search.models.levels import SmoothLevelModel  # noqa: PLC0415

        self._smooth_model = SmoothLevelModel(
            self._space,
            self._direction,
            self._seed,
            useful_from=_STARTUP,
            minds_reports=self._minds_reports,
        )
        return self._smooth_model

    def favourite(self, choices: Sequence[Params]) -> int | None:
        """Return which of some parameters look most like those that were good after the longest training."""
        return None if self._model_if_useful() is None else self._smooth_model.favourite(choices)
