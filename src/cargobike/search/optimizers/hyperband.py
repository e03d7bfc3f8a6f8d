"""Hyperband: several ASHAs side by side that start to compare at different levels of training.

ASHA trusts early reports: a trial that starts slowly is gone after `resource_min`. Hyperband hedges: some trials are
judged that early, some later, some never. If you do not know which is right for your curves, you lose little.

New parameters come from a `Sampler` (see `cargobike.search.models.sampler`), random draws by default. To plug in a
model, give an object with three methods; BOHB is Hyperband with a model for a sampler:

    class MySampler:
        def setup(self, space, *, direction, rng): ...  # called once
        def suggest(self): ...                          # parameters for a new trial; None: nothing new any more
        def observe(self, trial, resource, value): ...  # what a trial had reached after so much training

    Hyperband(resource_max=81, sampler=MySampler())

A subclass that always brings its own sampler passes it to `super().__init__(sampler=…)` and sets `name`.
"""

from __future__ import annotations

from typing import ClassVar

from cargobike.search.models.rungs import MOST_LEVELS, Rung, levels_of, useful_levels
from cargobike.search.optimizers.asha import ASHA, Ladder

_ASSUMED_LEVELS = 3
"""How many levels there are taken to be until it is known where the function ends."""
_MOST_BRACKETS = 8


class Hyperband(ASHA):
    """Asynchronous Hyperband.

    Each new trial belongs to a *bracket*: bracket 0 is compared from `resource_min` on, bracket 1 from
    `reduction_factor` times that on, the last one never. The brackets get trials in the proportions of the original
    algorithm, which gives each about the same amount of training. Within a bracket trials are promoted or stopped as
    by `ASHA`, without waiting for each other.

    Args:
        reduction_factor: One in so many goes on from each rung.
        resource_min: Where the first rung of bracket 0 is; see `ASHA` for the unit.
        resource_max: Where the function ends. Worth giving: until it is learned from the first trial that completes,
            the number of brackets is a guess.
        variant: `"promotion"`, `"stopping"`, or `"auto"`: promotion if the function saves checkpoints.
        sampler: Where new parameters come from; random draws by default.
        num_trials: Used if the experiment gives no number itself.
        searchspace: Used if the experiment gives no space itself.
    """

    name: ClassVar[str] = "hyperband"

    def _build_ladders(self) -> list[Ladder]:
        self._levels = levels_of(self.resource_min, self.reduction_factor, self.resource_max, MOST_LEVELS)
        assumed = len(self._levels) if self.resource_max is not None else _ASSUMED_LEVELS
        shares = bracket_shares(assumed + 1, self.reduction_factor)
        self._members = [0] * min(len(self._levels) + 1, _MOST_BRACKETS)
        ladders = []
        for bracket in range(len(self._members)):
            share = shares[min(bracket, assumed)]
            size = None if self.num_trials is None else round(self.num_trials * share)
            most = useful_levels(size, self.reduction_factor)
            levels = self._levels[bracket:][:most]
            ladders.append([Rung(level, self.reduction_factor, self.direction) for level in levels])
        return ladders

    def _next_bracket(self) -> int:
        """Return the bracket that is furthest behind its share, the more eager one among equals."""
        count = _ASSUMED_LEVELS
        if self._longest is not None:
            count = sum(level < self._longest for level in self._levels)
        shares = bracket_shares(min(count + 1, len(self._members)), self.reduction_factor)
        total = sum(self._members) + 1
        bracket = max(range(len(shares)), key=lambda one: (shares[one] * total - self._members[one], -one))
        self._members[bracket] += 1
        return bracket


def bracket_shares(count: int, reduction_factor: float) -> list[float]:
    """Return which share of the trials each of some brackets gets, the most eager one first.

    Example:
        >>> [round(share, 2) for share in bracket_shares(4, 3)]
        [0.55, 0.24, 0.12, 0.08]
    """
    weights = [reduction_factor**rungs * count / (rungs + 1) for rungs in reversed(range(count))]
    return [weight / sum(weights) for weight in weights]
