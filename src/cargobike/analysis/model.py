"""A model of the score over the whole space: what importance, trends and contours are read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cargobike.analysis.axes import Axis, Floats, axes_of, positions_of
from cargobike.analysis.forest import Column, Forest, Tree, grow_forest, widths_of
from cargobike.analysis.scores import objective_name, outer_fences, scored
from cargobike.core.errors import InvalidInputError
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial

FEWEST_TRIALS = 10
"""With fewer scores than this, what a forest says is chance."""


@dataclass(frozen=True)
class Model:
    """A forest, and what it was grown from.

    Attributes:
        axes: The parameters that vary.
        trials: The trials whose scores it learned.
        scores: Those scores.
        forest: The forest; its inputs are measured by probability, its outputs are `(score - middle) / spread`.
        middle: The mean score.
        spread: How far scores are from it.
    """

    axes: list[Axis]
    trials: list[Trial]
    scores: Floats
    forest: Forest
    middle: float = 0.0
    spread: float = 1.0

    def mean_over_others(self, names: Sequence[str], grids: Sequence[Floats]) -> Floats:
        """Return the mean score over all other parameters, at every combination of the given positions.

        Args:
            names: Parameters of the axes.
            grids: Positions on the axis of each; the result has one dimension for each.
        """
        chosen = [next(i for i, axis in enumerate(self.axes) if axis.name == name) for name in names]
        units = [self._units(index, grid) for index, grid in zip(chosen, grids, strict=True)]
        total = np.zeros([len(grid) for grid in grids])
        letters = "abcdefgh"[: len(chosen)]
        for tree in self.forest.trees:
            others = np.delete(widths_of(tree, self.forest.columns), chosen, axis=1).prod(axis=1)
            inside = [_inside(tree, index, unit) for index, unit in zip(chosen, units, strict=True)]
            total += np.einsum(f"l,{','.join(f'{x}l' for x in letters)}->{letters}", tree.values * others, *inside)
        return self.middle + self.spread * total / len(self.forest.trees)

    def _units(self, index: int, grid: Floats) -> Floats:
        units, _ = _measured_column(self.axes[index], grid, self.forest.columns[index].absent)
        return units


def fit(record: ExperimentRecord, *, seed: int = 0) -> Model:
    """Learn the score as a function of the parameters.

    Args:
        record: The experiment.
        seed: Seed of the forest.

    Raises:
        InvalidInputError: If fewer than `FEWEST_TRIALS` trials have a score, or no parameter varies.
    """
    trials = scored(record)
    scores = np.array([trial.value for trial in trials], dtype=float)
    if len(trials) < FEWEST_TRIALS:
        raise InvalidInputError(
            f"{len(trials)} trials have a score ({objective_name(record)}); this needs at least {FEWEST_TRIALS}. "
            "With step=… what stopped trials reported counts as well."
        )
    axes = axes_of(record, trials)
    if not axes:
        raise InvalidInputError("no parameter has more than one value in these trials, so none can matter")
    inputs, columns = _measured(axes, positions_of(axes, trials))
    outputs, middle, spread = _standardized(scores)
    return Model(axes, trials, scores, grow_forest(inputs, outputs, columns, seed=seed), middle, spread)


def _standardized(scores: Floats) -> tuple[Floats, float, float]:
    """Return scores around 0, so that neither a large offset nor a large unit costs digits, and how to undo it."""
    unit = float(np.abs(scores).max()) or 1.0
    scores = scores / unit
    # One diverged loss of 1e9 would be all of the variance there is.
    low, high = outer_fences(scores)
    scores = np.clip(scores, low, high) if low < high else scores
    middle = float(scores.mean())
    spread = float(scores.std()) or 1.0
    return (scores - middle) / spread, middle * unit, spread * unit


def _measured(axes: Sequence[Axis], positions: Floats) -> tuple[Floats, list[Column]]:
    """Return inputs measured by probability: what does not exist gets its own share of the column."""
    inputs = np.empty_like(positions)
    columns = []
    for index, axis in enumerate(axes):
        missing = float(np.isnan(positions[:, index]).mean())
        absent = 0.0
        if missing > 0:
            absent = 1 - axis.presence if axis.presence < 1 else missing
        inputs[:, index], column = _measured_column(axis, positions[:, index], absent)
        columns.append(column)
    return inputs, columns


def _measured_column(axis: Axis, given: Floats, absent: float) -> tuple[Floats, Column]:
    missing = np.isnan(given)
    if not axis.has_order:
        size = len(axis.labels)
        weights = [(1 - absent) / size] * size
        return np.where(missing, size, given), Column(tuple([*weights, absent] if absent > 0 else weights), absent)
    if axis.kind == "choice":
        unit = (given + 0.5) / len(axis.labels)
    else:
        low, high = axis.ends
        unit = np.clip((given - low) / (high - low), 0.0, 1.0)
    return np.where(missing, absent / 2, absent + (1 - absent) * unit), Column(absent=absent)


def _inside(tree: Tree, column: int, units: Floats) -> Floats:
    """Tell for each place and leaf whether the place lies in the leaf's side."""
    if column in tree.members:
        member: Floats = tree.members[column][:, units.astype(int)].T.astype(float)
        return member
    last = tree.high[:, column] >= 1.0
    above = units[:, None] >= tree.low[:, column]
    inside: Floats = (above & ((units[:, None] < tree.high[:, column]) | last)).astype(float)
    return inside
