"""Comparing: figures over several trials or several experiments."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query

from cargobike.analysis.axes import Floats
from cargobike.analysis.figures.trial import draw_compared_curves, draw_compared_progress
from cargobike.analysis.progress import Order, best_so_far, settled
from cargobike.analysis.scores import objective_name
from cargobike.analysis.views import seen_by
from cargobike.core.errors import InvalidInputError
from cargobike.core.visible import visible
from cargobike.experiments.pages.answers import ComparedExperiments, ComparedTrial, ComparedTrials, Figure
from cargobike.experiments.pages.api.inputs import ID_PATTERN, Name, OneId
from cargobike.experiments.pages.describing import experiment_summary, packed, trial_summary
from cargobike.experiments.pages.finding import trial_in
from cargobike.experiments.pages.state import State
from cargobike.experiments.results.comparison import compare
from cargobike.store.history.annotations import read_annotations
from cargobike.ui.web.answering import REFUSALS, sends

MOST_COMPARED = 24

Refs = Annotated[
    list[Annotated[str, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}/[0-9]{1,9}$")]],
    Query(alias="trial", min_length=1, max_length=MOST_COMPARED, description="`EXPERIMENT/NUMBER`, repeated."),
]

Ids = Annotated[
    list[Annotated[str, Query(pattern=ID_PATTERN)]],
    Query(alias="experiment", min_length=1, max_length=MOST_COMPARED, description="Full ids, repeated."),
]

routes = APIRouter(prefix="/compare", tags=["compare"], responses=REFUSALS)


@routes.get("/trials")
@sends
def trials(state: State, refs: Refs) -> ComparedTrials:
    """Return trials of one or several experiments side by side."""
    compared = []
    for experiment_id, number in map(_split, refs):
        live = state.live.get(experiment_id)
        with live.reading() as record:
            trial = trial_summary(trial_in(record, number))
            names = list(live.metrics(number))
            compared.append(ComparedTrial(experiment=experiment_summary(live, record), trial=trial, metric_names=names))
    return ComparedTrials(trials=compared)


@routes.get("/figures/curves")
@sends
def curves(state: State, refs: Refs, metric: Name = None) -> Figure:
    """Return one metric of several trials in one figure; without a name the first one's objective."""
    lines: list[tuple[str, Floats, Floats]] = []
    several = len({experiment_id for experiment_id, _ in map(_split, refs)}) > 1
    for experiment_id, number in map(_split, refs):
        live = state.live.get(experiment_id)
        with live.reading() as record:
            trial_in(record, number)
            reported = live.metrics(number)
            metric = metric or next(iter(reported), None)
            name = f"{record.header.name} · trial {number}" if several else f"trial {number}"
            if metric in reported:
                lines.append((name, *settled(reported[metric])))
    return Figure(**draw_compared_curves(metric or "metric", lines))


@routes.get("/figures/best-so-far")
@sends
def progress(state: State, ids: Ids, by: Order = "trial") -> Figure:
    """Return the best score so far of several experiments in one figure, without hidden trials."""
    lines: list[tuple[str, Floats, Floats]] = []
    objective = ""
    names: dict[str, int] = {}
    for experiment_id in ids:
        live = state.live.get(experiment_id)
        with live.reading() as record:
            seen = seen_by(visible(record, read_annotations(live.folder).hidden))
            objective = objective or objective_name(seen)
            series = best_so_far(seen, by)
            name = record.header.name or record.id
            names[name] = names.get(name, 0) + 1
            label = name if names[name] == 1 else f"{name} ({record.id})"
            lines.append((label, series.at, series.best))
    return Figure(**draw_compared_progress(lines, by, objective))


@routes.get("/experiments")
@sends
def experiments(state: State, first: OneId, second: OneId) -> ComparedExperiments:
    """Return everything in which two experiments differ: settings, space, code, environment, results."""
    differences = compare(state.live.get(first).folder, state.live.get(second).folder)
    plain_data = packed(msgspec.to_builtins(differences, enc_hook=str))
    return ComparedExperiments(**{name: plain_data[name] for name in ComparedExperiments.__struct_fields__})


def _split(ref: str) -> tuple[str, int]:
    experiment_id, _, number = ref.rpartition("/")
    if not experiment_id:
        raise InvalidInputError(f"{ref!r} names no trial; write EXPERIMENT/NUMBER.")
    return experiment_id, int(number)
