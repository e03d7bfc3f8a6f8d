"""Trials: the table, one of them, its curves and what it printed."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from cargobike.analysis.axes import Floats
from cargobike.analysis.down_sampling import Method, down_sampled
from cargobike.analysis.progress import settled
from cargobike.core.facts import pack_number
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState, Trial, TrialState
from cargobike.core.visible import visible
from cargobike.experiments.pages.answers import LogPart, MetricCurve, MetricsAnswer, TrialDetail, TrialPage
from cargobike.experiments.pages.api.inputs import ExperimentId, Limit, Offset, TrialNumber, Words
from cargobike.experiments.pages.csv_table import csv_table
from cargobike.experiments.pages.describing import trial_detail, trial_summary
from cargobike.experiments.pages.finding import PLAIN_COLUMNS, found_trials, trial_in
from cargobike.experiments.pages.log_files import read_part
from cargobike.experiments.pages.state import State
from cargobike.store.history.annotations import read_annotations
from cargobike.ui.web.answering import REFUSALS, sends

States = Annotated[list[TrialState], Query(alias="state", max_length=6, description="Only these.")]
Sort = Annotated[
    str,
    Query(
        pattern=rf"^({'|'.join(PLAIN_COLUMNS)}|(params|metrics)\..{{1,200}})$",
        max_length=210,
        description="A column: trial, value, duration …, params.NAME or metrics.NAME.",
    ),
]
Stream = Annotated[Literal["stdout", "stderr"], Path(description="Which of the two.")]


Rank = Annotated[int, Query(ge=0, le=100_000, description="Which rank of a gang.")]
Start = Annotated[int, Query(ge=-(2**31), le=2**53, description="Byte to begin at; from the end if < 0.")]

routes = APIRouter(prefix="/experiments/{experiment_id}", tags=["trials"], responses=REFUSALS)


@routes.get("/trials")
@sends
def trials(
    state: State,
    experiment_id: ExperimentId,
    *,
    states: States = [],  # noqa: B006
    q: Words = "",
    sort: Sort = "trial",
    descending: bool = False,
    offset: Offset = 0,
    limit: Limit = 100,
) -> TrialPage:
    """Return trials; `q` holds conditions such as `act=relu|gelu lr<0.01`, or words."""
    live = state.live.get(experiment_id)
    said = read_annotations(live.folder)
    marks = said.marks

    def find(record: ExperimentRecord) -> list[Trial]:
        return found_trials(record, states=states, text=q, sort=sort, descending=descending, marks=marks)

    with live.reading() as record:
        key = ("trials", tuple(states), q, sort, descending, tuple(marks.items()))
        version, fitting = live.made(key, find)
        seen = visible(record, said.hidden)
        return TrialPage(
            version=version,
            trials=[trial_summary(trial) for trial in fitting[offset : offset + limit]],
            total=len(fitting),
            all=len(record.trials),
            offset=offset,
            limit=limit,
            best=None if seen.best is None else seen.best.number,
            marks=marks,
            hidden=len(record.trials) - len(seen.trials),
        )


@routes.get("/trials.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def trials_csv(
    state: State,
    experiment_id: ExperimentId,
    *,
    states: States = [],  # noqa: B006
    q: Words = "",
    sort: Sort = "trial",
    descending: bool = False,
) -> Response:
    """Return the table as CSV, filtered and sorted like the list."""
    live = state.live.get(experiment_id)
    marks = read_annotations(live.folder).marks
    with live.reading() as record:
        fitting = found_trials(record, states=states, text=q, sort=sort, descending=descending, marks=marks)
        text = csv_table(record, fitting)
    headers = {"content-disposition": f'attachment; filename="{experiment_id}-trials.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@routes.get("/trials/{number}")
@sends
def one(state: State, experiment_id: ExperimentId, number: TrialNumber) -> TrialDetail:
    """Return everything about a trial except its points."""
    live = state.live.get(experiment_id)
    with live.reading() as record:
        return trial_detail(live, record, trial_in(record, number))


@routes.get("/trials/{number}/metrics")
@sends
def metrics(
    state: State,
    experiment_id: ExperimentId,
    number: TrialNumber,
    *,
    name: Annotated[list[str], Query(max_length=50, description="Only these metrics.")] = [],  # noqa: B006
    points: Annotated[int, Query(ge=3, le=100_000, description="How many points of each at most.")] = 1000,
    method: Method = "lttb",
) -> MetricsAnswer:
    """Return what a trial reported, down-sampled where there is more than can be drawn.

    A step that a later attempt reported again is sent once, with the values of the later attempt.
    """
    live = state.live.get(experiment_id)
    with live.reading() as record:
        trial_in(record, number)
        curves = [
            _curve(metric, *settled(curve), points, method)
            for metric, curve in live.metrics(number).items()
            if not name or metric in name
        ]
        return MetricsAnswer(trial=number, version=live.version, method=method, metrics=curves)


@routes.get("/trials/{number}/logs/{stream}")
@sends
def logs(
    state: State,
    experiment_id: ExperimentId,
    number: TrialNumber,
    stream: Stream,
    *,
    rank: Rank = 0,
    offset: Start = 0,
    limit: Annotated[int, Query(ge=4, le=1 << 20, description="How many bytes at most.")] = 1 << 16,
) -> LogPart:
    """Return a part of what a trial printed; ask again with `next_offset` to follow it."""
    live = state.live.with_files(experiment_id)
    with live.reading() as record:
        trial = trial_in(record, number)
        is_final = trial.state.is_final or record.state is not ExperimentState.RUNNING
    part = read_part(live.folder.trial(number).output(stream, rank), offset, limit, is_final=is_final)
    is_over = is_final and part.next_offset >= part.size
    return LogPart(trial=number, stream=stream, rank=rank, is_over=is_over, **dataclasses.asdict(part))


def _curve(name: str, steps: Floats, values: Floats, most: int, method: Method) -> MetricCurve:
    kept = down_sampled(steps, values, most, method)
    return MetricCurve(
        name=name,
        total=len(steps),
        steps=[int(step) for step in steps[kept]],
        values=[pack_number(float(value)) for value in values[kept]],
    )
