"""Progress: the best score so far, and the learning curves of trials, small enough to be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from cargobike.analysis.axes import Floats
from cargobike.analysis.scores import goodness_of, latest_of, score_of, scored, thinned
from cargobike.core.errors import InvalidInputError
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Trial, TrialState

Order = Literal["trial", "time"]


@dataclass(frozen=True)
class BestSoFar:
    """The best score as a series of improvements.

    Attributes:
        at: Trial numbers, or seconds since the start, at which the best score changed, and the last one of all.
        best: The best score from there on.
        trials: Numbers of the trials that set it.
    """

    at: Floats
    best: Floats
    trials: list[int]


def best_so_far(record: ExperimentRecord, by: Order = "trial") -> BestSoFar:
    """Return how the best score improved, by trial number or by the time at which trials ended.

    Raises:
        InvalidInputError: If it is to be ordered by something else.
    """
    if by not in get_args(Order):
        raise InvalidInputError(f"by={by!r}; allowed are {' and '.join(map(repr, get_args(Order)))}.")
    sign = 1.0 if record.header.direction == "max" else -1.0
    allowed = [trial for trial in scored(record) if not trial.violation > 0]
    places = sorted((place_of(record, trial, by), trial.number) for trial in allowed)
    at: list[float] = []
    best: list[float] = []
    trials: list[int] = []
    for place, number in places:
        score = record.trials[number].value
        if score is not None and (not best or sign * score > sign * best[-1]):
            at.append(place)
            best.append(score)
            trials.append(number)
    if at and (end := max(place_of(record, trial, by) for trial in record.trials.values())) > at[-1]:
        at.append(end)
        best.append(best[-1])
        trials.append(trials[-1])
    return BestSoFar(np.array(at), np.array(best), trials)


def place_of(record: ExperimentRecord, trial: Trial, by: Order) -> float:
    """Return a trial's place on the axis: its number, or the seconds from the start to its end."""
    if by == "trial":
        return float(trial.number)
    return (record.last_at if trial.ended_at is None else trial.ended_at) - record.started_at


@dataclass(frozen=True)
class LearningCurve:
    """What one trial reported of the objective, in the order of steps."""

    trial: Trial
    steps: Floats
    values: Floats


def learning_curves(record: ExperimentRecord, *, most: int = 200, most_points: int = 200) -> list[LearningCurve]:
    """Return the learning curves of all trials, or of the best and an even selection of the others.

    Args:
        record: The experiment.
        most: How many curves at most.
        most_points: How many points of each at most; what was highest and lowest stays.
    """
    goodness = goodness_of(record)
    sign = 1.0 if record.header.direction == "max" else -1.0

    def with_unfinished(trial: Trial) -> float:
        found = goodness(trial)
        if found > -math.inf or trial.state is TrialState.FAILED:
            return found
        latest = latest_of(trial)
        return -math.inf if latest is None else sign * latest

    reporting = [trial for trial in record.trials.values() if len(trial.curve)]
    curves = []
    for trial in thinned(reporting, most, with_unfinished):
        steps, values = settled(trial.curve)
        kept = _landmarks(values, most_points)
        curves.append(LearningCurve(trial, steps[kept], values[kept]))
    return curves


def settled(curve: Curve) -> tuple[Floats, Floats]:
    """Return a curve in the order of its steps, each once: what a later attempt reported again replaces it."""
    latest = dict(zip(curve.steps, curve.values, strict=True))
    steps = np.array(sorted(latest), dtype=float)
    values = np.array([latest[int(step)] for step in steps], dtype=float)
    return steps, np.where(np.isfinite(values), values, math.nan)


def _landmarks(values: Floats, most: int) -> list[int]:
    """Return the indices of at most `most` points: both ends, and of each stretch the highest and the lowest."""
    if len(values) <= most:
        return list(range(len(values)))
    edges = np.linspace(0, len(values), max(2, most // 2)).astype(int)
    kept = {0, len(values) - 1}
    for start, end in pairwise(edges):
        part = values[start:end]
        if np.isfinite(part).any():
            kept.update((start + int(np.nanargmin(part)), start + int(np.nanargmax(part))))
        elif len(part):
            kept.add(int(start))  # a gap stays a gap
    return sorted(kept)


def span_of_scores(record: ExperimentRecord) -> Floats:
    """Return all final scores, for judging how far they are spread."""
    return np.array([score for trial in record.trials.values() if (score := score_of(trial)) is not None])
