"""What a new search can learn from earlier experiments: their trials, as far as they fit its space and its goals."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence

from cargobike.core.errors import InvalidInputError
from cargobike.core.goals import Goals, pareto_front
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Direction, Params, Trial, TrialState
from cargobike.experiments.asking.arguments import Subject
from cargobike.search.spaces.values import identity

log = logging.getLogger(__name__)

_AT_MOST = 10
"""Points of earlier experiments that are tried again at most."""


def past_trials(
    records: Iterable[ExperimentRecord], subject: Subject, *, direction: Direction, metric: str | None, goals: Goals
) -> tuple[Trial, ...]:
    """Return the trials of earlier experiments in terms of a new search, oldest experiment first.

    Completed trials come with the score that the new search looks for, stopped ones with their curves. Failed ones are
    left out: what failed then need not fail now. Parameters that the new space does not have are dropped.

    Raises:
        InvalidInputError: If an experiment looked for something else, or none of its trials fits into the space.
    """
    if subject.listed is not None or subject.is_grid:
        raise InvalidInputError("warm_start was given, but all trials are listed already; leave it out.")
    trials: list[Trial] = []
    mistakes: list[str] = []
    for record in records:
        header = record.header
        if not goals.objectives and header.direction != direction:
            mistakes.append(f"{record.id} was searched for direction={header.direction!r}, this one is {direction!r}")
            continue
        usable = [
            fitting
            for trial in record.trials.values()
            if trial.state in (TrialState.COMPLETED, TrialState.STOPPED)
            and (fitting := _fitting(trial, subject, metric, goals)) is not None
        ]
        if not usable:
            mistakes.append(
                f"{record.id} has no completed trial that lies in this space ({', '.join(subject.space.names)}) "
                f"and has {_wanted(metric, goals)}"
            )
        log.info("warm start: %d of %d trials of %s fit", len(usable), len(record.trials), record.id)
        trials += usable
    if mistakes:
        raise InvalidInputError("Nothing can be learned from some of the experiments in warm_start:", mistakes)
    return tuple(trials)


def points_to_repeat(
    past: Sequence[Trial], *, direction: Direction, goals: Goals, num_trials: int | None
) -> tuple[Params, ...]:
    """Return the best points of earlier experiments, one for every ten new trials, for a new search to begin with.

    They are tried again, because data and code may have changed since, and a search must not end worse than it began.
    """
    count = min(_AT_MOST, max(1, (num_trials or 1) // 10))
    if goals.objectives:
        best = pareto_front(past, goals.objectives)
    else:
        scored = [trial for trial in past if trial.value is not None and trial.violation == 0]
        best = sorted(scored, key=lambda trial: trial.value or 0.0, reverse=direction == "max")
    points: dict[object, Params] = {}
    for trial in best:
        points.setdefault(tuple((name, identity(value)) for name, value in trial.params.items()), trial.params)
    return tuple(points.values())[:count]


def _fitting(trial: Trial, subject: Subject, metric: str | None, goals: Goals) -> Trial | None:
    """Return a trial as the new search sees it, without what the earlier optimizer noted; `None` if it does not fit."""
    params = {name: value for name, value in trial.params.items() if name in subject.space.names}
    if not subject.space.contains(params):
        return None
    value: float | None = None
    if trial.state is TrialState.COMPLETED:
        value = trial.value if metric is None else trial.metrics.get(metric)
        wanted = [trial.metrics.get(name, math.nan) for name in goals.names]
        if not all(map(math.isfinite, wanted)) or (
            not goals.objectives and (value is None or not math.isfinite(value))
        ):
            return None
    return Trial(
        subject.space.validate(params),
        state=trial.state,
        value=value,
        metrics=dict(trial.metrics),
        curve=trial.curve,
        violation=goals.violation(trial.metrics) if value is not None else 0.0,
    )


def _wanted(metric: str | None, goals: Goals) -> str:
    names = [*goals.names, *([metric] if metric else [])]
    return f"finite numbers for {', '.join(names)}" if names else "a finite score"
