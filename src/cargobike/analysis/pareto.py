"""The Pareto front: trials of which no other is better in one metric without being worse in the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cargobike.analysis.axes import Floats
from cargobike.analysis.scores import metric_names, metric_of
from cargobike.analysis.views import direction_of
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Direction, Trial


@dataclass(frozen=True)
class Tradeoff:
    """Two metrics of all completed trials that have both.

    Attributes:
        names: The two metrics.
        directions: Which way each is better.
        trials: The trials.
        points: One row for each trial.
        is_on_front: Whether it keeps all constraints and no other such trial beats it.
    """

    names: tuple[str, str]
    directions: tuple[Direction, Direction]
    trials: list[Trial]
    points: Floats
    is_on_front: npt.NDArray[np.bool_]


def tradeoff(
    record: ExperimentRecord, first: str, second: str, direction: Mapping[str, Direction] | None = None
) -> Tradeoff:
    """Compare all completed trials by two metrics.

    Args:
        record: The experiment.
        first: A returned metric, the objective, or `duration_s`.
        second: Another one.
        direction: Which way each is better, `{"recall": "max"}`; by default objectives as in the search, and any
            other metric as a cost: less is better.

    Raises:
        InvalidInputError: If a metric or a direction is unknown; lists all mistakes.
    """
    known = metric_names(record)
    given = dict(direction or {})
    mistakes = [f"there is no metric {name!r}.{nearest(name, known)}" for name in (first, second) if name not in known]
    mistakes += [
        f"direction[{name!r}] must be 'max' or 'min', not {way!r}"
        for name, way in given.items()
        if way not in ("max", "min")
    ]
    mistakes += [f"direction: {name!r} is not compared here" for name in given if name not in (first, second)]
    if mistakes:
        raise InvalidInputError(f"these metrics cannot be compared; known are {', '.join(known)}:", mistakes)
    ways = (
        given.get(first, direction_of(record, first)),
        given.get(second, direction_of(record, second)),
    )
    trials, points = [], []
    for trial in record.trials.values():
        x, y = metric_of(record, trial, first), metric_of(record, trial, second)
        if x is not None and y is not None:
            trials.append(trial)
            points.append((x, y))
    table = np.array(points, dtype=float).reshape(-1, 2)
    is_allowed = np.array([not trial.violation > 0 for trial in trials], dtype=bool)
    is_on_front = np.zeros(len(trials), dtype=bool)
    is_on_front[is_allowed] = front_of(table[is_allowed], ways)
    return Tradeoff((first, second), ways, trials, table, is_on_front)


def front_of(points: Floats, directions: tuple[Direction, Direction]) -> npt.NDArray[np.bool_]:
    """Tell for each point whether no other is better in one coordinate without being worse in the other."""
    costs = points * [-1.0 if way == "max" else 1.0 for way in directions]
    is_on_front = np.zeros(len(points), dtype=bool)
    best_second, best_pair = np.inf, (np.nan, np.nan)
    for index in np.lexsort((costs[:, 1], costs[:, 0])):
        first, second = costs[index]
        if second < best_second or (first, second) == best_pair:
            is_on_front[index] = True
            best_second, best_pair = second, (first, second)
    return is_on_front
