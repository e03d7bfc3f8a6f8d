"""What the regrets say: means, ranks, and whether a difference is more than chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FLOOR = 1e-5
"""A regret below this counts as this in geometric means, which could not bear a zero."""

Regrets = Mapping[tuple[str, int], float]
"""By problem and seed."""


def geometric_mean(regrets: Regrets) -> float:
    """Return the geometric mean over the problems of that over the seeds, so that every problem counts the same."""
    problems: dict[str, list[float]] = {}
    for (problem, _), regret in regrets.items():
        problems.setdefault(problem, []).append(math.log(max(regret, FLOOR)))
    return math.exp(statistics.mean(statistics.mean(logs) for logs in problems.values())) if problems else math.nan


def mean_ranks(systems: Mapping[str, Regrets]) -> dict[str, float]:
    """Return each system's rank, 1 for the best, averaged over what all of them searched; equals share their ranks."""
    shared = set.intersection(*(set(regrets) for regrets in systems.values()))
    totals = dict.fromkeys(systems, 0.0)
    for key in shared:
        values = {name: round(regrets[key], 9) for name, regrets in systems.items()}
        for name, value in values.items():
            better = sum(other < value for other in values.values())
            equal = sum(other == value for other in values.values())
            totals[name] += better + (equal + 1) / 2
    return {name: total / len(shared) if shared else math.nan for name, total in totals.items()}


@dataclass
class Comparison:
    """Ours against a peer, paired by problem and seed.

    Attributes:
        family: Where.
        share: After which share of the budget.
        ours: Whose regrets.
        peer: Against whose.
        ratio: Geometric mean of ours over that of the peer: below 1 is better.
        p_worse: Probability of such a difference or a larger one if ours were not worse (Wilcoxon, one-sided).
        p_better: The same if ours were not better.
        p_worse_corrected: Corrected for the number of comparisons made (Holm).
        p_better_corrected: The same.
    """

    family: str
    share: float
    ours: str
    peer: str
    pairs: int
    ratio: float
    p_worse: float
    p_better: float
    p_worse_corrected: float = math.nan
    p_better_corrected: float = math.nan

    @property
    def verdict(self) -> str:
        """Say what that means at a level of 5 %."""
        if self.p_worse_corrected < 0.05:
            return "worse"
        return "better" if self.p_better_corrected < 0.05 else "no difference"


def compare(family: str, share: float, names: tuple[str, str], ours: Regrets, peer: Regrets) -> Comparison:
    """Compare two systems on what both of them searched.

    The test is on differences of logarithms, so that small regrets count as much as large ones.
    """
    from scipy.stats import wilcoxon

    shared = sorted(set(ours) & set(peer))
    gaps = [math.log(max(ours[key], FLOOR)) - math.log(max(peer[key], FLOOR)) for key in shared]
    gaps = [0.0 if abs(gap) < 1e-9 else gap for gap in gaps]
    ps = [1.0, 1.0]
    if any(gaps):
        ps = [float(wilcoxon(gaps, alternative=way, zero_method="zsplit").pvalue) for way in ("greater", "less")]
    ratio = geometric_mean({key: ours[key] for key in shared}) / geometric_mean({key: peer[key] for key in shared})
    return Comparison(family, share, *names, len(shared), ratio, *ps)


def correct(comparisons: Sequence[Comparison]) -> None:
    """Correct the p values of comparisons that are read together, by Holm's method."""
    for given, corrected in (("p_worse", "p_worse_corrected"), ("p_better", "p_better_corrected")):
        highest = 0.0
        for rank, comparison in enumerate(sorted(comparisons, key=lambda one: float(getattr(one, given)))):
            highest = max(highest, min(1.0, (len(comparisons) - rank) * getattr(comparison, given)))
            setattr(comparison, corrected, highest)
