"""An experiment seen differently: by another metric, or by what trials had reached at a step."""

from __future__ import annotations

import dataclasses

import msgspec

from cargobike.analysis.scores import metric_names, metric_of, objective_name, score_at
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Direction, Trial


def seen_by(record: ExperimentRecord, metric: str | None = None) -> ExperimentRecord:
    """Return the experiment with another metric in the place of the objective.

    Args:
        record: The experiment.
        metric: A returned metric or `duration_s`; by default the objective, the first one if there are several.

    Raises:
        InvalidInputError: If there is no such metric.
    """
    objectives = record.goals.objectives
    wanted = metric or next(iter(objectives), objective_name(record))
    if not objectives and wanted in ("value", objective_name(record)):
        return record
    known = metric_names(record)
    if metric is not None and wanted not in known:
        raise InvalidInputError(f"there is no metric {metric!r}; known are {', '.join(known)}.{nearest(metric, known)}")
    aim = msgspec.structs.replace(
        record.header.asked.aim, metric=wanted, direction=direction_of(record, wanted), objectives={}
    )
    trials = {number: _seen(record, trial, wanted) for number, trial in record.trials.items()}
    return dataclasses.replace(record, header=record.header.asking(aim=aim), trials=trials, objective=wanted)


def seen_at(record: ExperimentRecord, step: int) -> ExperimentRecord:
    """Return the experiment with what each trial reported at a step in the place of its score.

    Stopped and failed trials have a score then, too, and trials that did not report the step have none. The best trial
    stays the one that was best in the end.
    """
    name = f"{objective_name(record)} at step {step}"
    trials = {
        number: msgspec.structs.replace(trial, value=score_at(trial, step)) for number, trial in record.trials.items()
    }
    aim = msgspec.structs.replace(record.header.asked.aim, metric=name)
    seen = dataclasses.replace(record, header=record.header.asking(aim=aim), trials=trials)
    seen.best = None if record.best is None else trials[record.best.number]
    return seen


def direction_of(record: ExperimentRecord, metric: str) -> Direction:
    """Return which way a metric is better: as the search was told; any other is taken as a cost, less is better."""
    objectives = record.goals.objectives
    if metric in objectives:
        return objectives[metric]
    if not objectives and metric in ("value", objective_name(record)):
        return record.header.direction
    return "min"


def _seen(record: ExperimentRecord, trial: Trial, metric: str) -> Trial:
    curve = trial.curve if metric == record.objective else Curve()
    return msgspec.structs.replace(trial, value=metric_of(record, trial, metric), curve=curve)
