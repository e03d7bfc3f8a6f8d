"""Where multi-fidelity optimizers take new parameters from: at random, or from a model that learns on the way."""

from __future__ import annotations

import random
from typing import Protocol

from cargobike.core.records import Direction, Params, Trial
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.spaces.space import Searchspace


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
