"""Comparing: figures over several trials or several experiments."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from cargobike.analysis.axes import Floats
from cargobike.analysis.figures.trial import draw_compared_curves, draw_compared_progress
from cargobike.analysis.progress import Order, best_so_far, settled
from cargobike.analysis.scores import objective_name
from cargobike.analysis.views import seen_by
from cargobike.core.errors import InvalidInputError
from cargobike.experiments.pages import answers
from cargobike.experiments.pages.api.inputs import REFUSALS, Name
from cargobike.experiments.pages.api.trials import trial_in
from cargobike.experiments.pages.describing import answer, experiment_summary, packed, row_of, trial_summary
from cargobike.experiments.pages.state import ServerState
from cargobike.experiments.results.comparison import compare

MOST_COMPARED = 24

Refs = Annotated[
    list[Annotated[str, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}/[0-9]{1,9}$")]],
    Query(alias="trial", min_length=1, max_length=MOST_COMPARED, description="`EXPERIMENT/NUMBER`, repeated."),
]

Ids = Annotated[
    list[Annotated[str, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$")]],
    Query(alias="experiment", min_length=1, max_length=MOST_COMPARED, description="Full ids, repeated."),
]

OneId = Annotated[str, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$", description="Full id of an experiment.")]


def compare_routes(state: ServerState) -> APIRouter:
    """Make the routes of comparisons."""
    routes = APIRouter(prefix="/compare", tags=["compare"], responses=REFUSALS)

    @routes.get("/trials", response_model=answers.ComparedTrials)
    def trials(refs: Refs) -> Response:
        """Return trials of one or several experiments side by side."""
        told = []
        for experiment_id, number in map(_split, refs):
            live = state.live.get(experiment_id)
            with live.reading() as record:
                told.append(
                    {
                        "experiment": experiment_summary(row_of(record)),
                        "trial": trial_summary(trial_in(record, number)),
                        "metric_names": list(live.metrics(number)),
                    }
                )
        return answer({"trials": told})

    @routes.get("/figures/curves", response_model=answers.Figure)
    def curves(refs: Refs, metric: Name = None) -> Response:
        """Return one metric of several trials in one figure; without a name the first one's objective."""
        found: list[tuple[str, Floats, Floats]] = []
        several = len({experiment_id for experiment_id, _ in map(_split, refs)}) > 1
        for experiment_id, number in map(_split, refs):
            live = state.live.get(experiment_id)
            with live.reading() as record:
                trial_in(record, number)
                known = live.metrics(number)
                metric = metric or next(iter(known), None)
                name = f"{record.header.name} · trial {number}" if several else f"trial {number}"
                if metric in known:
                    found.append((name, *settled(known[metric])))
        if metric is None:
            metric = "metric"
        return answer(draw_compared_curves(metric, found))

    @routes.get("/figures/best-so-far", response_model=answers.Figure)
    def progress(ids: Ids, by: Order = "trial") -> Response:
        """Return the best score so far of several experiments in one figure."""
        found: list[tuple[str, Floats, Floats]] = []
        objective = ""
        names: dict[str, int] = {}
        for experiment_id in ids:
            with state.live.get(experiment_id).reading() as record:
                seen = seen_by(record)
                objective = objective or objective_name(seen)
                series = best_so_far(seen, by)
                name = record.header.name or record.id
                names[name] = names.get(name, 0) + 1
                label = name if names[name] == 1 else f"{name} ({record.id})"
                found.append((label, series.at, series.best))
        return answer(draw_compared_progress(found, by, objective))

    @routes.get("/experiments", response_model=answers.ComparedExperiments)
    def experiments(first: OneId, second: OneId) -> Response:
        """Return everything in which two experiments differ: settings, space, code, environment, results."""
        found = compare(state.live.get(first).folder, state.live.get(second).folder)
        return answer(packed(msgspec.to_builtins(found, enc_hook=str)))

    return routes


def _split(ref: str) -> tuple[str, int]:
    experiment_id, _, number = ref.rpartition("/")
    if not experiment_id:
        raise InvalidInputError(f"{ref!r} names no trial; write EXPERIMENT/NUMBER.")
    return experiment_id, int(number)
