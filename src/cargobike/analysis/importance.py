"""Which parameters matter: the variance of the score, divided among the parameters that cause it (functional ANOVA).

A random forest learns the score as a function of the parameters. Its trees are constant on boxes, so the variance that
is due to any group of parameters over the whole space is a sum over pairs of boxes, and no sampling is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from cargobike.analysis.axes import Floats
from cargobike.analysis.forest import Column, Forest, Tree, widths_of
from cargobike.analysis.model import Model, fit
from cargobike.analysis.views import seen_at, seen_by
from cargobike.core.record import ExperimentRecord

_MOST_PAIRS = 66
"""Interactions of two are listed for up to so many pairs of parameters (twelve parameters)."""


@dataclass(frozen=True)
class Importance:
    """How much of the score's variance each parameter causes, the most important first.

    Attributes:
        main: Share of the variance that a parameter causes by itself.
        total: The same with every interaction in which it takes part; these overlap, so they may sum to more than 1.
        interactions: Share that two parameters cause together beyond what each causes by itself.
        explained: How much of the variance the forest explains in trials it has not seen; near 0: do not trust it.
        trials: How many trials this is based on.
    """

    main: dict[str, float]
    total: dict[str, float]
    interactions: dict[tuple[str, str], float] = field(default_factory=dict)
    explained: float = 0.0
    trials: int = 0

    def __str__(self) -> str:
        width = max(map(len, self.main), default=0)
        lines = [
            f"{name:<{width}}  {self.main[name]:6.1%}  with interactions {self.total[name]:6.1%}" for name in self.main
        ]
        return "\n".join(
            [
                *lines,
                f"from {self.trials} trials; the forest explains {self.explained:.0%} of the variance in unseen ones",
            ]
        )


def importance(
    record: ExperimentRecord, *, step: int | None = None, metric: str | None = None, seed: int = 0
) -> Importance:
    """Divide the variance of the score among the parameters.

    Args:
        record: The experiment.
        metric: Another metric than the objective, or one of several objectives; by default the first.
        step: Take what trials reported at this step instead of final scores, so that stopped trials count too.
        seed: Seed of the forest.

    Raises:
        InvalidInputError: If too few trials have a score, or no parameter varies.
    """
    seen = seen_by(record, metric)
    return importance_of(fit(seen if step is None else seen_at(seen, step), seed=seed))


def importance_of(model: Model) -> Importance:
    """Divide the variance of a fitted model among the parameters."""
    return _divided(model.forest, [axis.name for axis in model.axes], len(model.trials))


def _divided(forest: Forest, names: Sequence[str], trials: int) -> Importance:
    width = len(names)
    pairs = list(combinations(range(width), 2))
    pairs = pairs if len(pairs) <= _MOST_PAIRS else []
    alone, others = np.zeros(width), np.zeros(width)
    together = dict.fromkeys(pairs, 0.0)
    whole = 0.0
    prepared = [(tree, widths_of(tree, forest.columns)) for tree in forest.trees]
    mean = float(np.mean([tree.values @ widths.prod(axis=1) for tree, widths in prepared]))
    # The forest is the mean of its trees, so its square is a mean over pairs of them; each pair counts both ways.
    for first, (left, left_widths) in enumerate(prepared):
        for second, (right, right_widths) in enumerate(prepared[: first + 1]):
            count = 1.0 if first == second else 2.0
            overlaps = [_overlap(left, right, column, forest.columns[column]) for column in range(width)]
            products = _all_but_one(overlaps)
            whole += count * float(left.values @ (products[0] * overlaps[0]) @ right.values)
            for index in range(width):
                ours = left.values * _product_without(left_widths, (index,))
                theirs = right.values * _product_without(right_widths, (index,))
                alone[index] += count * float(ours @ overlaps[index] @ theirs)
                weighted = left.values * left_widths[:, index]
                others[index] += count * float(weighted @ products[index] @ (right.values * right_widths[:, index]))
            for pair in pairs:
                ours = left.values * _product_without(left_widths, pair)
                theirs = right.values * _product_without(right_widths, pair)
                together[pair] += count * float(ours @ (overlaps[pair[0]] * overlaps[pair[1]]) @ theirs)
    square, number = mean * mean, len(prepared) ** 2
    variance = whole / number - square
    if not variance > 1e-12 * max(square, 1e-12):
        return Importance(dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0), {}, forest.explained, trials)
    main = np.clip((alone / number - square) / variance, 0, 1)
    total = np.clip(1 - (others / number - square) / variance, main, 1)
    order = sorted(range(width), key=lambda index: (-total[index], -main[index]))
    both = {pair: (together[pair] / number - square) / variance - main[pair[0]] - main[pair[1]] for pair in pairs}
    ranked = sorted(((share, pair) for pair, share in both.items() if share > 0), reverse=True)
    return Importance(
        main={names[index]: float(main[index]) for index in order},
        total={names[index]: float(total[index]) for index in order},
        interactions={(names[pair[0]], names[pair[1]]): float(share) for share, pair in ranked},
        explained=forest.explained,
        trials=trials,
    )


def _overlap(left: Tree, right: Tree, column: int, kind: Column) -> Floats:
    """Return the probability that each pair of leaves shares in a column."""
    if column in left.members:
        shared: Floats = (left.members[column] * np.array(kind.weights)) @ right.members[column].T.astype(float)
        return shared
    high = np.minimum(left.high[:, column, None], right.high[None, :, column])
    low = np.maximum(left.low[:, column, None], right.low[None, :, column])
    overlap: Floats = np.maximum(high - low, 0.0)
    return overlap


def _all_but_one(factors: Sequence[Floats]) -> list[Floats]:
    """Return for each factor the product of all others."""
    products: list[Floats] = [np.ones_like(factors[0]) for _ in factors]
    before, after = np.ones_like(factors[0]), np.ones_like(factors[0])
    for index in range(len(factors)):
        products[index] = products[index] * before
        before = before * factors[index]
        mirror = len(factors) - 1 - index
        products[mirror] = products[mirror] * after
        after = after * factors[mirror]
    return products


def _product_without(widths: Floats, left_out: tuple[int, ...]) -> Floats:
    product: Floats = np.delete(widths, left_out, axis=1).prod(axis=1)
    return product
