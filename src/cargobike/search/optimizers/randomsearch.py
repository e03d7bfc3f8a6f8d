"""Random search: independent draws, and no combination twice where they can be counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from cargobike.core.records import Params, Trial
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.space import Searchspace
from cargobike.search.spaces.values import identity

_LISTABLE = 10_000
"""A space of up to so many combinations is listed when drawing keeps hitting what was tried already."""
_MISSES = 20
"""Draws in a row that may hit something tried before another way is taken."""


class RandomSearch(AbstractOptimizer):
    """Draws every trial from the space, without looking at the others.

    A finite space is drawn without repetition and ends when it is used up.

    Args:
        num_trials: Used if the experiment gives no number itself.
        searchspace: Used if the experiment gives no space itself.

    Example:
        >>> optimizer = RandomSearch()
        >>> optimizer.setup(Searchspace(depth=[1, 2]), num_trials=None, direction="max", seed=7)
        >>> optimizer.initialize()
        >>> [optimizer.get_suggestion() for _ in range(3)]
        [{'depth': 1}, {'depth': 2}, None]
    """

    name: ClassVar[str] = "randomsearch"
    learns: ClassVar[bool] = False
    handles_objectives: ClassVar[bool] = True
    is_endless: ClassVar[bool] = True

    def __init__(self, num_trials: int | None = None, searchspace: Searchspace | None = None) -> None:
        self.preset_num_trials = num_trials
        self.preset_space = searchspace

    def initialize(self) -> None:
        """Forget everything tried before."""
        self._suggested = 0
        self._tried: set[tuple[object, ...]] = set()
        self._size = self.space.size
        self._left: list[Params] | None = None
        self._walk: Iterator[Params] | None = None
        self._countable = {name for name, parameter in self.space.parameters.items() if parameter.count}

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Pass over what was tried in earlier experiments, if enough is left then."""
        left = math.inf if self._size is None else self._size - len(trials)
        if left >= (self.num_trials or 1):
            for trial in trials:
                self._remember(trial.params)

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return a draw that was not made before, or `None` when there is none left."""
        if self.num_trials is not None and self._suggested >= self.num_trials:
            return None
        params = self._draw()
        if params is not None:
            self._suggested += 1
        return params

    def _draw(self) -> Params | None:
        if self._size is not None and len(self._tried) >= self._size:
            return None
        for _ in range(_MISSES if self._left is None else 0):
            params = self.space.sample(self.rng)
            if self._remember(params):
                return params
        if self._size is None:
            return self.space.sample(self.rng)  # its countable part seems used up; the rest never is
        if self._size > _LISTABLE:
            self._walk = self._walk or self.space.grid(self._whole)
            return next(params for params in self._walk if self._remember(params))
        if self._left is None:
            everything = self.space.grid(self._whole)
            self._left = [params for params in everything if self._key(params) not in self._tried]
            self.rng.shuffle(self._left)
        params = self._left.pop()
        self._remember(params)
        return params

    @property
    def _whole(self) -> dict[str, int]:
        # `points` thin out a grid; a random search of a finite space may hit every value.
        parameters = self.space.parameters.values()
        return {p.name: p.count for p in parameters if p.points is not None and p.count is not None}

    def _remember(self, params: Params) -> bool:
        """Tell whether this was not tried before; draws with a continuous part are taken to be new."""
        if not self._countable.issuperset(params):
            return True
        key = self._key(params)
        if key in self._tried:
            return False
        self._tried.add(key)
        return True

    def _key(self, params: Params) -> tuple[object, ...]:
        return tuple((name, identity(params[name])) for name in self.space.names if name in params)
