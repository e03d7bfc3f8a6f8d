"""Trials: the table, one of them, its curves and what it printed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from cargobike.analysis.down_sampling import Method, down_sampled
from cargobike.analysis.progress import settled
from cargobike.core.errors import NotFoundError
from cargobike.core.facts import pack_number
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState, Trial, TrialState
from cargobike.experiments.pages import answers
from cargobike.experiments.pages.api.inputs import REFUSALS, ExperimentId, Limit, Offset, TrialNumber, Words
from cargobike.experiments.pages.describing import answer, trial_detail, trial_summary, utc
from cargobike.experiments.pages.finding import PLAIN_COLUMNS, found_trials
from cargobike.experiments.pages.log_files import read_part
from cargobike.experiments.pages.state import ServerState

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


def trial_routes(state: ServerState) -> APIRouter:
    """Make the routes of trials."""
    routes = APIRouter(prefix="/experiments/{experiment_id}", tags=["trials"], responses=REFUSALS)

    @routes.get("/trials", response_model=answers.TrialPage)
    def trials(
        experiment_id: ExperimentId,
        *,
        states: States = [],  # noqa: B006
        q: Words = "",
        sort: Sort = "trial",
        descending: bool = False,
        offset: Offset = 0,
        limit: Limit = 100,
    ) -> Response:
        """Return trials; `q` holds conditions such as `act=relu|gelu lr<0.01`, or words."""
        live = state.live.get(experiment_id)
        key = ("trials", tuple(states), q, sort, descending)

        def find(record: ExperimentRecord) -> list[Trial]:
            return found_trials(record, states=states, text=q, sort=sort, descending=descending)

        with live.reading() as record:
            version, found = live.made(key, find)
            told = {
                "version": version,
                "trials": [trial_summary(trial) for trial in found[offset : offset + limit]],
                "total": len(found),
                "all": len(record.trials),
                "offset": offset,
                "limit": limit,
                "best": None if record.best is None else record.best.number,
            }
            return answer(told)

    @routes.get("/trials.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
    def trials_csv(
        experiment_id: ExperimentId,
        states: States = [],  # noqa: B006
        q: Words = "",
        sort: Sort = "trial",
        descending: bool = False,
    ) -> Response:
        """Return the table as CSV, filtered and sorted like the list."""
        with state.live.get(experiment_id).reading() as record:
            found = found_trials(record, states=states, text=q, sort=sort, descending=descending)
            text = "".join(_csv_lines(record, found))
        headers = {"content-disposition": f'attachment; filename="{experiment_id}-trials.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    @routes.get("/trials/{number}", response_model=answers.TrialDetail)
    def one(experiment_id: ExperimentId, number: TrialNumber) -> Response:
        """Return everything about a trial except its points."""
        live = state.live.get(experiment_id)
        with live.reading() as record:
            return answer(trial_detail(live, record, trial_in(record, number)))

    @routes.get("/trials/{number}/metrics", response_model=answers.MetricsAnswer)
    def metrics(
        experiment_id: ExperimentId,
        number: TrialNumber,
        name: Annotated[list[str], Query(max_length=50, description="Only these metrics.")] = [],  # noqa: B006
        points: Annotated[int, Query(ge=3, le=100_000, description="How many points of each at most.")] = 1000,
        method: Method = "lttb",
    ) -> Response:
        """Return what a trial reported, down-sampled where there is more than can be drawn.

        Steps that a later attempt reported again are told once, as the later attempt had them.
        """
        live = state.live.get(experiment_id)
        with live.reading() as record:
            trial_in(record, number)
            curves = [
                _curve(metric, *settled(curve), points, method)
                for metric, curve in live.metrics(number).items()
                if not name or metric in name
            ]
            return answer({"trial": number, "version": live.version, "method": method, "metrics": curves})

    @routes.get("/trials/{number}/logs/{stream}", response_model=answers.LogPart)
    def logs(
        experiment_id: ExperimentId,
        number: TrialNumber,
        stream: Stream,
        *,
        rank: Annotated[int, Query(ge=0, le=100_000, description="Which rank of a gang.")] = 0,
        offset: Annotated[int, Query(ge=-(2**31), le=2**53, description="Byte to begin at; from the end if < 0.")] = 0,
        limit: Annotated[int, Query(ge=4, le=1 << 20, description="How many bytes at most.")] = 1 << 16,
    ) -> Response:
        """Return a part of what a trial printed; ask again with `next_offset` to follow it."""
        live = state.live.with_files(experiment_id)
        with live.reading() as record:
            trial = trial_in(record, number)
            is_final = trial.state.is_final or record.state is not ExperimentState.RUNNING
        part = read_part(live.folder.trial(number).output(stream, rank), offset, limit, is_final=is_final)
        told = {
            "trial": number,
            "stream": stream,
            "rank": rank,
            "text": part.text,
            "offset": part.offset,
            "next_offset": part.next_offset,
            "size": part.size,
            "is_over": is_final and part.next_offset >= part.size,
        }
        return answer(told)

    return routes


def trial_in(record: ExperimentRecord, number: int) -> Trial:
    """Return a trial; raises `NotFoundError` naming those that there are."""
    try:
        return record.trials[number]
    except KeyError:
        known = f"trials 0 to {len(record.trials) - 1}" if record.trials else "no trials yet"
        raise NotFoundError(f"There is no trial {number} in {record.id}; it has {known}.") from None


def _curve(name: str, steps: Any, values: Any, most: int, method: Method) -> dict[str, Any]:
    kept = down_sampled(steps, values, most, method)
    return {
        "name": name,
        "total": len(steps),
        "steps": [int(step) for step in steps[kept]],
        "values": [pack_number(float(value)) for value in values[kept]],
    }


def _csv_lines(record: ExperimentRecord, trials: Iterable[Trial]) -> Iterator[str]:
    params = list(dict.fromkeys(name for trial in record.trials.values() for name in trial.params))
    metrics = list(dict.fromkeys(name for trial in record.trials.values() for name in trial.metrics))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(
        ["trial", "state", "value", "duration_s", "attempts", "started_at"]
        + [_text_cell(f"params.{name}") for name in params]
        + [_text_cell(f"metrics.{name}") for name in metrics]
    )
    for trial in trials:
        plain = [trial.number, trial.state.value, trial.value, trial.duration_s, trial.attempts, utc(trial.started_at)]
        writer.writerow(
            [_cell(value) for value in plain]
            + [_cell(trial.params.get(name)) for name in params]
            + [_cell(trial.metrics.get(name)) for name in metrics]
        )
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, int | float) else _text_cell(str(value))


def _text_cell(text: str) -> str:
    """Keep a spreadsheet from taking text for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
