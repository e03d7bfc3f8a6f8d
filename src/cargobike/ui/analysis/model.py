"""A model of the score over the whole space: what importance, trends and contours are read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Trial
from cargobike.store.fold import ExperimentRecord
from cargobike.ui.analysis.axes import Axis, Floats, axes_of, positions_of
from cargobike.ui.analysis.forest import Column, Forest, Tree, grow_forest, widths_of
from cargobike.ui.analysis.scores import outer_fences, score_at, scored

FEWEST_TRIALS = 10
"""With fewer scores than this, whatever a forest says is chance."""


@dataclass(frozen=True)
class Model:
    """A forest, and what it was grown from.

    Attributes:
        axes: The parameters that vary.
        trials: The trials whose scores it learned.
        scores: Those scores.
        forest: The forest; its inputs are measured by probability.
    """

    axes: list[Axis]
    trials: list[Trial]
    scores: Floats
    forest: Forest

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
        return total / len(self.forest.trees)

    def _units(self, index: int, grid: Floats) -> Floats:
        units, _ = _measured_column(self.axes[index], grid, self.forest.columns[index].absent)
        return units


def fit(record: ExperimentRecord, *, step: int | None = None, seed: int = 0) -> Model:
    """Learn the score as a function of the parameters.

    Args:
        record: The experiment.
        step: Take what trials reported at this step instead of final scores, so that stopped trials count too.
        seed: Seed of the forest.

    Raises:
        InvalidInputError: If fewer than `FEWEST_TRIALS` trials have a score, or no parameter varies.
    """
    trials, scores = _scores(record, step)
    if len(trials) < FEWEST_TRIALS:
        hint = "" if step is not None else " With step=… the reports of stopped trials count as well."
        raise InvalidInputError(
            f"{len(trials)} trials have a score{'' if step is None else f' at step {step}'}; this needs at least "
            f"{FEWEST_TRIALS}.{hint}"
        )
    axes = axes_of(record, trials)
    if not axes:
        raise InvalidInputError("no parameter has more than one value in these trials, so none can matter")
    inputs, columns = _measured(axes, positions_of(axes, trials))
    # One diverged loss of 1e9 would be all of the variance there is.
    low, high = outer_fences(scores)
    outputs = np.clip(scores, low, high) if low < high else scores
    return Model(axes, trials, scores, grow_forest(inputs, outputs, columns, seed=seed))


def _scores(record: ExperimentRecord, step: int | None) -> tuple[list[Trial], Floats]:
    if step is None:
        trials = scored(record)
        return trials, np.array([trial.value for trial in trials], dtype=float)
    reports = [(trial, score_at(trial, step)) for trial in record.trials.values()]
    known = [(trial, score) for trial, score in reports if score is not None]
    return [trial for trial, _ in known], np.array([score for _, score in known], dtype=float)


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
