"""What random search finds, known nearly exactly, and how other searches stand beside that.

Twenty random searches of a lattice say little: whether one more of them meets the best configuration moves their
geometric mean by a third. But what a random search finds after so many trainings is the best of so many draws. Where
every configuration can be listed, its distribution is a formula; elsewhere a thousand searches are drawn, without the
scheduler. What is left is the chance in the searches that are compared with it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quality_problems import Problem
from quality_running import BUDGET_S, FULL_TRAININGS, SHARES, WORKERS
from quality_statistics import FLOOR, Comparison

from cargobike.search.optimizers.registry import resolve_optimizer

_LISTED = 10_000
"""Spaces of up to so many configurations are listed."""
DRAWN = 1000
"""So many random searches are drawn where a space is larger."""
_FIRST_SEED = 10**6
"""None that anybody else searches with."""


@dataclass(frozen=True)
class Chance:
    """What a random search finds: regrets, the least first, none below the floor, and how likely each is.

    Attributes:
        regrets: In order.
        weights: They add up to 1.
        searches: How many were drawn; infinite where the distribution is a formula.
    """

    regrets: Sequence[float]
    weights: Sequence[float]
    searches: float

    def place(self, regret: float) -> float:
        """Return how likely a random search is to be better than a regret; as good counts half."""
        at = round(max(regret, FLOOR), 12)
        better = sum(weight for one, weight in zip(self.regrets, self.weights, strict=True) if one < at)
        equal = sum(weight for one, weight in zip(self.regrets, self.weights, strict=True) if one == at)
        return better + equal / 2

    @property
    def mean(self) -> float:
        """The geometric mean."""
        logs = (weight * math.log(one) for one, weight in zip(self.regrets, self.weights, strict=True))
        return math.exp(math.fsum(logs))

    @property
    def variance(self) -> float:
        """The variance of the places of other random searches: less than a twelfth where equals are likely."""
        return (1 - math.fsum(weight**3 for weight in self.weights)) / 12


def chances(problem: Problem) -> dict[float, Chance]:
    """Return what a random search finds on a problem after each share of the budget."""
    ends = {share: _ends(share) for share in SHARES}
    if problem.truth is None and problem.space.size is not None and problem.space.size <= _LISTED:
        regrets = sorted(problem.regret(problem.curve(params)[-1]) for params in problem.space.grid())
        return {share: _of_formula(regrets, count) for share, count in ends.items()}
    found = [_drawn(problem, seed, sorted(ends.values())) for seed in range(_FIRST_SEED, _FIRST_SEED + DRAWN)]
    weights = [1 / DRAWN] * DRAWN
    return {share: _gathered([one[count] for one in found], weights, DRAWN) for share, count in ends.items()}


def _ends(share: float) -> int:
    """Return how many trainings have ended after a share of the budget, one after the other on each worker."""
    return WORKERS * math.floor(share * BUDGET_S / (BUDGET_S * WORKERS / FULL_TRAININGS) + 1e-9)


def _of_formula(regrets: Sequence[float], count: int) -> Chance:
    """Return the distribution of the least of some draws that are all different."""
    size = len(regrets)
    above = [math.comb(size - rank, count) / math.comb(size, count) for rank in range(size + 1)]
    return _gathered(regrets, [above[rank] - above[rank + 1] for rank in range(size)], math.inf)


def _drawn(problem: Problem, seed: int, counts: Sequence[int]) -> dict[int, float]:
    """Return the regret of the configuration that looks best after so many draws of `randomsearch`."""
    optimizer = resolve_optimizer("randomsearch")
    optimizer.setup(problem.space, num_trials=None, direction="min", seed=seed)
    optimizer.initialize()
    drawn = [optimizer.get_suggestion() for _ in range(max(counts))]
    ended = [(problem.curve(params)[-1], params) for params in drawn if isinstance(params, dict)]
    found = {}
    for count in counts:
        score, params = min(ended[:count], key=lambda one: one[0])
        found[count] = problem.regret(score if problem.truth is None else problem.truth(params))
    return found


def _gathered(regrets: Sequence[float], weights: Sequence[float], searches: float) -> Chance:
    sums: dict[float, float] = {}
    for regret, weight in zip(regrets, weights, strict=True):
        if weight > 0:
            at = round(max(regret, FLOOR), 12)
            sums[at] = sums.get(at, 0.0) + weight
    return Chance(sorted(sums), [sums[at] for at in sorted(sums)], searches)


def compare_with_chance(
    family: str, share: float, name: str, found: Mapping[str, Sequence[float]], chance: Mapping[str, Chance]
) -> Comparison:
    """Compare searches of the problems of a family with random search, unpaired.

    Each search has a place among random searches, from 0, better than all, to 1; half is level. The test is on the mean
    of the problems' mean places: that of Mann and Whitney, stratified with every problem counting the same, as van
    Elteren does. The variance of a place is the greater of what it would be by chance alone and of what is seen: so
    searches that scatter more than random ones do, and are ahead as often as not, do not pass for better or worse.

    Args:
        family: Where.
        share: After which share of the budget.
        name: Who searched.
        found: The regrets on each problem.
        chance: What random search finds on each.
    """
    means, variances, logs = [], [], []
    for problem, regrets in found.items():
        places = [chance[problem].place(regret) for regret in regrets]
        seen = statistics.variance(places) if len(places) > 1 else 0.0
        means.append(statistics.mean(places))
        variances.append(max(seen, chance[problem].variance) * (1 / len(places) + 1 / chance[problem].searches))
        ours = statistics.mean(math.log(max(regret, FLOOR)) for regret in regrets)
        logs.append(ours - math.log(chance[problem].mean))
    behind = (statistics.mean(means) - 0.5) / (math.sqrt(math.fsum(variances)) / len(variances))
    p_worse, p_better = (0.5 * math.erfc(way * behind / math.sqrt(2)) for way in (1, -1))
    count = sum(map(len, found.values()))
    ratio = math.exp(statistics.mean(logs))
    return Comparison(family, share, name, "randomsearch", count, ratio, p_worse, p_better)
