"""Scores: which trials have one, what it is called, which of many trials are worth showing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from cargobike.analysis.axes import Floats
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial, TrialState

Item = TypeVar("Item")


def objective_name(record: ExperimentRecord) -> str:
    """Return what the optimized number is called."""
    return record.header.metric or record.objective or _only_metric(record) or "value"


def scored(record: ExperimentRecord) -> list[Trial]:
    """Return the trials with a score: completed, and finite."""
    return [trial for trial in record.trials.values() if score_of(trial) is not None]


def score_of(trial: Trial) -> float | None:
    """Return the score of a trial; a stopped or failed one has no value, and NaN does not count as a score."""
    return trial.value if trial.value is not None and math.isfinite(trial.value) else None


def latest_of(trial: Trial) -> float | None:
    """Return the score of a trial or else its last finite report, which is something to look at, not to compare."""
    score = score_of(trial)
    if score is not None:
        return score
    return next((value for value in reversed(trial.curve.values) if math.isfinite(value)), None)


def score_at(trial: Trial, step: int) -> float | None:
    """Return what a trial reported at a step, the latest attempt's word counting."""
    curve = trial.curve
    for index in range(len(curve) - 1, -1, -1):
        if curve.steps[index] == step and math.isfinite(curve.values[index]):
            return curve.values[index]
    return None


def common_step(record: ExperimentRecord, fewest: int) -> int | None:
    """Return the step at which trials can best be compared: the last that at least half of them reported.

    Args:
        record: The experiment.
        fewest: How many must have reported it at least; `None` is returned if no step was reported by so many.
    """
    counts: Counter[int] = Counter()
    reporting = 0
    for trial in record.trials.values():
        reporting += bool(len(trial.curve))
        counts.update(set(trial.curve.steps))
    enough = max(fewest, reporting / 2)
    return max((step for step, count in counts.items() if count >= enough), default=None)


def metric_of(record: ExperimentRecord, trial: Trial, name: str) -> float | None:
    """Return a named number of a completed trial: a metric, the objective, or `duration_s`."""
    if trial.state is not TrialState.COMPLETED:
        return None
    found = trial.metrics.get(name)
    if found is None and name in ("value", objective_name(record)):
        found = trial.value
    if found is None and name == "duration_s":
        found = trial.duration_s
    return found if found is not None and math.isfinite(found) else None


def metric_names(record: ExperimentRecord) -> list[str]:
    """Return every name that `metric_of` knows in this experiment, objectives first."""
    names = {name for trial in record.trials.values() for name in trial.metrics}
    first = list(record.goals.objectives) or [objective_name(record)]
    return [*first, *sorted(names.difference(first)), "duration_s"]


def thinned(items: Sequence[Item], most: int, goodness: Callable[[Item], float]) -> list[Item]:
    """Return at most `most` items in their order: the best tenth of them, the rest spread evenly over all.

    Args:
        items: Anything.
        most: How many may stay.
        goodness: More is better; -inf for what need not be seen.
    """
    if len(items) <= most:
        return list(items)
    kept = set(sorted(range(len(items)), key=lambda index: -goodness(items[index]))[: max(1, most // 10)])
    others = [index for index in range(len(items)) if index not in kept]
    spread = np.linspace(0, len(others) - 1, most - len(kept)).round().astype(int)
    kept.update(others[index] for index in spread)
    return [items[index] for index in sorted(kept)]


def goodness_of(record: ExperimentRecord) -> Callable[[Trial], float]:
    """Return a function that tells how good a trial is: more is better, in both directions.

    A trial without a score, or one that breaks a constraint, is as bad as can be.
    """
    sign = 1.0 if record.header.direction == "max" else -1.0

    def goodness(trial: Trial) -> float:
        score = score_of(trial)
        return -math.inf if score is None or trial.violation > 0 else sign * score

    return goodness


def outer_fences(values: Floats) -> tuple[float, float]:
    """Return the ends beyond which a value is far out: three times the middle half's width away from it."""
    with np.errstate(over="ignore"):
        first, third = np.quantile(values, [0.25, 0.75])
        reach = 3 * (third - first)
        return float(first - reach), float(third + reach)


def _only_metric(record: ExperimentRecord) -> str | None:
    best = record.best
    return next(iter(best.metrics)) if best is not None and len(best.metrics) == 1 else None
