"""Experiments: the list, one of them, asking one to stop."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from cargobike.core.errors import StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import ExperimentState
from cargobike.core.version import __version__
from cargobike.experiments.index.index import ExperimentSort
from cargobike.experiments.pages import answers
from cargobike.experiments.pages.api.inputs import REFUSALS, ExperimentId, Limit, Offset, Words
from cargobike.experiments.pages.describing import answer, experiment_detail, experiment_summary, snapshot_told
from cargobike.experiments.pages.state import ServerState
from cargobike.store.files.mirror import share_stop


def experiment_routes(state: ServerState) -> APIRouter:
    """Make the routes of experiments."""
    routes = APIRouter(tags=["experiments"], responses=REFUSALS)

    @routes.get("/server", response_model=answers.ServerInfo)
    def server() -> Response:
        """Return about this server."""
        told = {"version": __version__, "project": str(state.project.root), "may_stop": state.access.may_stop}
        return answer(told)

    @routes.get("/experiments", response_model=answers.ExperimentPage)
    def experiments(
        *,
        wanted: Annotated[list[ExperimentState], Query(alias="state", max_length=5, description="Only these.")] = [],  # noqa: B006
        q: Words = "",
        sort: ExperimentSort = "started",
        descending: bool = True,
        offset: Offset = 0,
        limit: Limit = 50,
    ) -> Response:
        """Return experiments, the newest first unless asked otherwise."""
        rows = state.listing.experiments(states=wanted, sort=sort, descending=descending, words=q)
        shown = rows[offset : offset + limit]
        told = [{**experiment_summary(row), "progress": state.listing.progress(row)} for row in shown]
        return answer({"experiments": told, "total": len(rows), "offset": offset, "limit": limit})

    @routes.get("/experiments/{experiment_id}", response_model=answers.ExperimentDetail)
    def one(experiment_id: ExperimentId) -> Response:
        """Return everything about an experiment except its trials."""
        live = state.live.get(experiment_id)
        with live.reading() as record:
            return answer(experiment_detail(live, record, may_stop=state.access.may_stop))

    @routes.get("/experiments/{experiment_id}/snapshot", response_model=answers.SnapshotAnswer | None)
    def snapshot(experiment_id: ExperimentId) -> Response:
        """Return what was run and in which environment; `null` if that was not recorded."""
        return answer(snapshot_told(state.live.with_files(experiment_id).folder))

    @routes.post(
        "/experiments/{experiment_id}/stop",
        status_code=202,
        response_model=answers.Stopping,
        responses={
            403: {"model": answers.Problem, "description": "This server changes nothing, or a stranger's page asked."},
            415: {"model": answers.Problem, "description": "Not asked for with JSON."},
        },
    )
    def stop(experiment_id: ExperimentId) -> Response:
        """Ask a running experiment to stop, as `cargobike stop` does; its end is seen in its state.

        Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
        """
        if not state.access.may_stop:
            return JSONResponse({"detail": "This server was started with --read-only."}, 403)
        live = state.live.get(experiment_id)
        with live.reading() as record:
            was_running = record.state is ExperimentState.RUNNING
            if was_running:
                _request_stop(live.folder)
            told = {"id": record.id, "state": record.state.value, "was_running": was_running}
        response = answer(told)
        response.status_code = 202
        return response

    return routes


def _request_stop(folder: ExperimentFolder) -> None:
    try:
        folder.stop_request.touch()
        share_stop(folder)
    except OSError as error:
        raise StoreError(f"Cannot ask {folder.id} to stop: {error.strerror}.") from error
