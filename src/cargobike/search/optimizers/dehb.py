"""DEHB: Hyperband's brackets, filled by differential evolution."""

from __future__ import annotations

import bisect
import math
import random
from typing import ClassVar

import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Direction, Params, Trial
from cargobike.core.values.kinds import is_number
from cargobike.search.models.sampler import RandomSampler
from cargobike.search.models.standing import loss_of
from cargobike.search.optimizers.asha import Variant
from cargobike.search.optimizers.differential_evolution import FEWEST, Mixer
from cargobike.search.optimizers.hyperband import Hyperband
from cargobike.search.optimizers.sobol import Sobol
from cargobike.search.spaces.encoding import Encoding, Floats
from cargobike.search.spaces.space import Searchspace

_TRIES = 10


class EvolutionSampler(RandomSampler):
    """Suggests mixtures of the trials that were best after the longest training that enough trials got to.

    Each level of training has a population of its own: the best trials that got there. The next trial is a mixture of
    the population of the highest level that has one; until there is any it is a Sobol point.

    Args:
        population: How many of the best of a level are mixed.
        crossover: Share of the genes that a new trial takes from the mixture, the rest from one member.
        random_share: How often it takes a Sobol point nevertheless.
    """

    def __init__(self, population: int = 10, crossover: float = 0.9, random_share: float = 0.1) -> None:
        self.population = population
        self.crossover = crossover
        self.random_share = random_share

    def setup(self, space: Searchspace, *, direction: Direction, rng: random.Random) -> None:
        """Start afresh."""
        self._search = Sobol()
        self._search.setup(space, num_trials=None, direction=direction, seed=rng.getrandbits(32))
        self._search.initialize()
        self._direction = direction
        self._encoding = Encoding(space)
        self._generator = np.random.default_rng(rng.getrandbits(64))
        self._mixer = Mixer(self._encoding, self.crossover, self._generator)
        self._levels: dict[int, list[tuple[float, int, Floats]]] = {}
        self._observed = 0
        self._turn = 0

    def suggest(self) -> Params | None:
        """Return a mixture, or a Sobol point if there is nothing to mix; `None` when nothing new is left."""
        return self._mixture() or super().suggest()

    def observe(self, trial: Trial, resource: int, value: float) -> None:
        """Add a trial to the population of a level if it is among the best there."""
        row = self._encoding.try_row(trial.params)
        if row is None or not math.isfinite(value):
            return
        self._observed += 1
        members = self._levels.setdefault(resource, [])
        # Their order of arrival keeps rows, which have no order, from being compared.
        bisect.insort(members, (loss_of(value, self._direction), self._observed, self._mixer.fill(row)))
        del members[self.population :]

    def _mixture(self) -> Params | None:
        ready = [level for level, members in self._levels.items() if len(members) >= FEWEST]
        if not ready or self._generator.random() < self.random_share:
            return None
        members = [genes for _, _, genes in self._levels[max(ready)]]
        self._turn += 1
        holder = members.pop(self._turn % len(members))
        best = self._levels[max(ready)][0][2]
        for _ in range(_TRIES):
            params = self._mixer.mixture(holder, best, members)
            if self._search._remember(params):
                return params
        return None


class DEHB(Hyperband):
    """Asynchronous Hyperband whose new trials are mixtures of those that did well.

    Use it as BOHB, where scores jump too much for a model or there are very many trials.

    Args:
        reduction_factor: One in so many goes on from each rung.
        resource_min: Where the first rung of bracket 0 is; see `ASHA` for the unit.
        resource_max: Where the function ends; learned from the first trial that completes if not given.
        variant: `"promotion"`, `"stopping"`, or `"auto"`: promotion if the function saves checkpoints.
        population: How many of the best trials of a level are mixed.
    """

    name: ClassVar[str] = "dehb"

    def __init__(
        self,
        reduction_factor: float = 3,
        resource_min: int = 1,
        resource_max: int | None = None,
        *,
        variant: Variant = "auto",
        population: int = 10,
    ) -> None:
        if not is_number(population, lambda number: number >= FEWEST):
            raise InvalidInputError(f"population={population!r}: a mixture needs {FEWEST} members at least")
        sampler = EvolutionSampler(population)
        super().__init__(reduction_factor, resource_min, resource_max, variant=variant, sampler=sampler)
        self.population = population
