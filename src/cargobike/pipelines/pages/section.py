"""The part of the dashboard that pipelines provide: runs, their graphs, live, and what each step did."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException, Path, Query, Request
from starlette.responses import Response

from cargobike.core.errors import CargobikeError
from cargobike.core.values.exact import unpack_exactly
from cargobike.pipelines.pages import describing
from cargobike.pipelines.pages.answers import (
    Change,
    RunDetails,
    RunPage,
    ScheduleLine,
    ScheduleList,
    StepDetails,
    StepOutput,
)
from cargobike.pipelines.pages.drawing import MOST_BARS, gantt, graph
from cargobike.pipelines.pages.glancing import documents, pipeline_card
from cargobike.pipelines.pages.listing import Runs
from cargobike.pipelines.pages.timetable import all_schedules, line_of_schedule, schedule_in
from cargobike.pipelines.running import start
from cargobike.store.files.mirror import share_stop
from cargobike.ui.web.answering import REFUSALS, answer, sends
from cargobike.ui.web.permissions import CHANGES, FAILING_CHANGES, Caller, needs
from cargobike.ui.web.roles import Role
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Words = Annotated[str, Query(max_length=200, description="Only runs in whose id or pipeline this occurs.")]
Pipeline = Annotated[str, Query(max_length=200, description="Only runs of this pipeline.")]
Run = Annotated[str, Path(max_length=150, description="The run's id.")]
Number = Annotated[int, Path(ge=0, le=10**9, description="The step, from 1.")]
PipelineName = Annotated[str, Body(embed=True, max_length=200, description="The pipeline: the function's name.")]
Arguments = Annotated[
    dict[str, Any] | None, Body(embed=True, description="What it is called with, where that is not as before.")
]
ScheduleName = Annotated[str, Path(max_length=150, description="The schedule's name.")]
Fragment = Annotated[bool, Query(description="Only what changes while it runs.")]

_SHOWN = 50
_STEPS = 200


async def _runs(request: Request) -> Runs:
    listed: Runs = request.app.state.sections["pipelines"]
    return listed


Listed = Annotated[Runs, Depends(_runs)]

pages = APIRouter()
api = APIRouter(tags=["pipelines"], responses=REFUSALS)


@api.get("/pipelines/runs")
@sends
def runs(listed: Listed, pipeline: Pipeline = "", words: Words = "", offset: Offset = 0, limit: Limit = 50) -> RunPage:
    """Return runs of pipelines, the newest first, and which pipelines there are."""
    return listed.page(pipeline, words, offset, limit)


@api.get("/pipelines/runs/{run}")
@sends
def one_run(state: Server, caller: Caller, run: Run, offset: Offset = 0, limit: Limit = 200) -> RunDetails:
    """Return one run: how it is doing, what set it off, and its steps."""
    return describing.details(describing.found(state.project, run), offset, limit, may_change=caller.may_run)


@api.get("/pipelines/runs/{run}/steps/{step}")
@sends
def one_step(state: Server, run: Run, step: Number) -> StepDetails:
    """Return one step: what it was given, what it returned, how often it was tried."""
    return describing.step_details(describing.found(state.project, run), step)


@api.get("/pipelines/runs/{run}/steps/{step}/output")
@sends
def step_output(state: Server, run: Run, step: Number) -> StepOutput:
    """Return the last lines that a step printed."""
    return describing.output(describing.found(state.project, run), step)


@api.get("/pipelines/schedules")
@sends
def schedules(state: Server) -> ScheduleList:
    """Return what sets off which pipeline, and the last times that it did."""
    return all_schedules(state.project)


@api.post("/pipelines/runs", status_code=202, response_model=Change, responses=FAILING_CHANGES)
@needs(Role.RUN)
def run_again(state: Server, runs: Listed, pipeline: PipelineName, arguments: Arguments = None) -> Response:
    """Run a pipeline that has run before, by its name, in a process of its own.

    Its function is the one that the newest run of it was begun with, on the machine of this server; what it is called
    with is what that run was, with `arguments` instead of those that they name. A pipeline that never ran here is sent
    with its first run: `cargobike --server … pipelines run file.py:function`. Needs `Content-Type: application/json`
    and a header `X-Cargobike`, which no page of another origin can send.
    """
    newest = describing.newest_of(runs, pipeline)
    if not newest.function:
        raise HTTPException(409, f"The function of {pipeline} is in no file, so another process cannot run it.")
    given = unpack_exactly(newest.params) | (arguments or {})
    try:
        started = start(newest.function, params=given, project=state.project, folder=newest.folder)
    except (CargobikeError, OSError) as error:
        raise HTTPException(409, str(error)) from error
    runs.keep(started.process)
    return answer(Change(started.run_id, "starting"), status=202)


@api.post("/pipelines/schedules/{schedule}/pause", response_model=ScheduleLine, responses=CHANGES)
@needs(Role.RUN)
@sends
def pause_schedule(state: Server, schedule: ScheduleName) -> ScheduleLine:
    """Let nothing set a schedule off until it is resumed; a run that is at work goes on."""
    return line_of_schedule(schedule_in(state.project, schedule).pause())


@api.post("/pipelines/schedules/{schedule}/resume", response_model=ScheduleLine, responses=CHANGES)
@needs(Role.RUN)
@sends
def resume_schedule(state: Server, schedule: ScheduleName) -> ScheduleLine:
    """Go on with a schedule that was paused: what came in between does not count."""
    return line_of_schedule(schedule_in(state.project, schedule).resume())


@api.post("/pipelines/schedules/{schedule}/remove", response_model=ScheduleLine, responses=CHANGES)
@needs(Role.ADMINISTER)
@sends
def remove_schedule(state: Server, schedule: ScheduleName) -> ScheduleLine:
    """Delete a schedule; a run that is at work goes on."""
    found = schedule_in(state.project, schedule)
    found.remove()
    return line_of_schedule(found)


@api.post("/pipelines/runs/{run}/cancel", status_code=202, response_model=Change, responses=FAILING_CHANGES)
@needs(Role.RUN)
def cancel(state: Server, run: Run) -> Response:
    """Ask a run to end, as `cargobike pipelines cancel` does; it can be resumed later.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    shown = describing.details(describing.found(state.project, run), 0, 1, may_change=True)
    if not shown.may_cancel:
        raise HTTPException(409, f"Run {run} does not run: it is {shown.run.state}.")
    folder = describing.found(state.project, run).folder
    folder.stop_request.touch()
    share_stop(folder)
    return answer(Change(run, "cancelling"), status=202)


@api.post("/pipelines/runs/{run}/resume", status_code=202, response_model=Change, responses=FAILING_CHANGES)
@needs(Role.RUN)
def resume(state: Server, runs: Listed, run: Run) -> Response:
    """Go on with a run in a process of its own, as `cargobike pipelines resume` does.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    record = describing.found(state.project, run)
    shown = describing.details(record, 0, 1, may_change=True)
    if not shown.may_resume:
        why = f"it is {shown.run.state}" if record.started.function else "its function is in no file"
        raise HTTPException(409, f"Run {run} cannot be resumed here: {why}.")
    try:
        started = start(
            record.started.function, run_id=run, project=state.project, folder=record.started.folder, resume=True
        )
    except (CargobikeError, OSError) as error:
        raise HTTPException(409, str(error)) from error
    runs.keep(started.process)
    return answer(Change(run, "resuming"), status=202)


@pages.get("/pipelines")
def runs_page(
    state: Server, runs: Listed, templates: Pages, *, pipeline: Pipeline = "", words: Words = "", offset: Offset = 0
) -> Response:
    """Return the page with the list of runs."""
    listed = runs.page(pipeline, words, offset, _SHOWN)
    planned = all_schedules(state.project)
    return templates.page("pipelines/runs.html", listed=listed, words=words, pipeline=pipeline, planned=planned)


@pages.get("/pipelines/runs/{run}")
def run_page(
    state: Server, caller: Caller, templates: Pages, run: Run, *, offset: Offset = 0, fragment: Fragment = False
) -> Response:
    """Return the page of a run, or with `fragment` what changes while it runs."""
    record = describing.found(state.project, run)
    shown = describing.details(record, offset, _STEPS, may_change=caller.may_run)
    return templates.page(
        "pipelines/live.html" if fragment else "pipelines/run.html",
        shown=shown,
        graph=graph(record),
        gantt=gantt(record, time.time()),
        most_bars=MOST_BARS,
        error=record.error,
    )


@pages.get("/pipelines/runs/{run}/steps/{step}")
def step_page(state: Server, templates: Pages, run: Run, step: Number) -> Response:
    """Return the page of one step."""
    record = describing.found(state.project, run)
    shown = describing.step_details(record, step)
    printed = describing.output(record, step)
    return templates.page("pipelines/step.html", shown=shown, output=printed, error=record.steps[step].error)


def pipeline_section(server: ServerState) -> Section:
    """Make the section of pipelines of one server."""
    listed = Runs(server.project)
    return Section(
        name="pipelines",
        holds="runs of pipelines",
        links=(Link("Pipelines", "/pipelines", "pipelines"),),
        pages=pages,
        api=api,
        package="cargobike.pipelines.pages",
        state=listed,
        cards=(pipeline_card(listed, server.project),),
        documents=lambda: documents(listed, server.project),
        filters={"lasted": _lasted, "memory": lambda count: f"{count / 1048576:.0f} MB" if count else "–"},
        prepare=listed.warm,
        close=listed.close,
    )


def _lasted(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2f}\N{NO-BREAK SPACE}s" if seconds < 10 else f"{seconds:.1f}\N{NO-BREAK SPACE}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
