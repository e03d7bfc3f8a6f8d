"""Experiments: the list, one of them, asking one to stop, what people add to one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query
from starlette.responses import Response

from cargobike.core.errors import StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import ExperimentState
from cargobike.experiments.index.index import ExperimentSort
from cargobike.experiments.pages.answers import (
    AnnotationsAnswer,
    ExperimentDetail,
    ExperimentPage,
    SnapshotAnswer,
    Stopping,
)
from cargobike.experiments.pages.api.inputs import ExperimentId, Limit, Offset, TrialKey, Words
from cargobike.experiments.pages.describing import experiment_detail, note_told, row_summary, snapshot_told
from cargobike.experiments.pages.finding import trial_in
from cargobike.experiments.pages.state import State
from cargobike.store.files.mirror import share_stop
from cargobike.store.history.annotations import LONGEST_NOTE, Mark, annotate
from cargobike.ui.web.answering import REFUSALS, answer, sends
from cargobike.ui.web.permissions import CHANGES, Caller, needs
from cargobike.ui.web.roles import Role

routes = APIRouter(tags=["experiments"], responses=REFUSALS)


@routes.get("/experiments")
@sends
def experiments(
    state: State,
    *,
    states: Annotated[list[ExperimentState], Query(alias="state", max_length=5, description="Only these.")] = [],  # noqa: B006
    q: Words = "",
    sort: ExperimentSort = "started",
    descending: bool = True,
    offset: Offset = 0,
    limit: Limit = 50,
) -> ExperimentPage:
    """Return experiments, the newest first unless asked otherwise."""
    rows = state.listing.experiments(states=states, sort=sort, descending=descending, words=q)
    summaries = [row_summary(row, state.listing.progress(row)) for row in rows[offset : offset + limit]]
    return ExperimentPage(experiments=summaries, total=len(rows), offset=offset, limit=limit)


@routes.get("/experiments/{experiment_id}")
@sends
def one(state: State, caller: Caller, experiment_id: ExperimentId) -> ExperimentDetail:
    """Return everything about an experiment except its trials."""
    live = state.live.get(experiment_id)
    with live.reading() as record:
        return experiment_detail(live, record, may_stop=caller.may_run)


@routes.get("/experiments/{experiment_id}/snapshot")
@sends
def snapshot(state: State, experiment_id: ExperimentId) -> SnapshotAnswer | None:
    """Return what was run and in which environment; `null` if that was not recorded."""
    return snapshot_told(state.live.with_files(experiment_id).folder)


@routes.post(
    "/experiments/{experiment_id}/stop",
    status_code=202,
    response_model=Stopping,
    responses=CHANGES,
)
@needs(Role.RUN)
def stop(state: State, experiment_id: ExperimentId) -> Response:
    """Ask a running experiment to stop, as `cargobike stop` does; its state shows when it has ended.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    live = state.live.get(experiment_id)
    with live.reading() as record:
        was_running = record.state is ExperimentState.RUNNING
        if was_running:
            _request_stop(live.folder)
        return answer(Stopping(id=record.id, state=record.state, was_running=was_running), status=202)


@routes.post(
    "/experiments/{experiment_id}/annotations",
    response_model=AnnotationsAnswer,
    responses=CHANGES,
)
@needs(Role.RUN)
def add_annotations(
    state: State,
    experiment_id: ExperimentId,
    *,
    add: Annotated[list[str], Body(max_length=20, description="Tags to add.")] = [],  # noqa: B006
    remove: Annotated[list[str], Body(max_length=20, description="Tags to take away.")] = [],  # noqa: B006
    note: Annotated[str, Body(max_length=LONGEST_NOTE, description="A note to add.")] = "",
    marks: Annotated[
        dict[TrialKey, Mark | None], Body(max_length=1000, description="Marks of trials, null to take one away.")
    ] = {},  # noqa: B006
) -> Response:
    """Add tags, a note or marks of trials, as `cargobike tag` and `note` do; the journal does not change.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    live = state.live.get(experiment_id)
    with live.reading() as record:
        for number in marks:
            trial_in(record, number)
    said = annotate(live.folder, add=add, remove=remove, note=note, marks=marks)
    notes = [note_told(one) for one in said.notes]
    return answer(AnnotationsAnswer(id=experiment_id, tags=list(said.tags), notes=notes, marks=said.marks))


def _request_stop(folder: ExperimentFolder) -> None:
    try:
        folder.stop_request.touch()
        share_stop(folder)
    except OSError as error:
        raise StoreError(f"Cannot ask {folder.id} to stop: {error.strerror}.") from error
