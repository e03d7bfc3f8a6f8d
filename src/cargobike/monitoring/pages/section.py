"""The routes of monitors: pages, and REST below `/api/v1/monitors`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query, Request
from starlette.responses import Response

from cargobike.monitoring.following import RECORDS, Records
from cargobike.monitoring.pages import describing
from cargobike.monitoring.pages.answers import AlarmAnswer, ErrorPage, MonitorDetails, MonitorPage, WindowPage
from cargobike.monitoring.pages.glancing import alarm_card, documents, known_monitors
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.permissions import CHANGES, Caller, needs
from cargobike.ui.web.roles import Role
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Words = Annotated[str, Query(max_length=200, description="Only monitors in whose name or subject this occurs.")]
Name = Annotated[str, Path(max_length=100, description="Its name.")]
AlarmId = Annotated[str, Path(max_length=40, description="The alarm: `alarm-3`.")]
Note = Annotated[str, Body(embed=True, max_length=2000, description="What there is to say about it.")]


_LISTED = 100

pages = APIRouter()
api = APIRouter(tags=["monitors"], responses=REFUSALS)


def _records(request: Request) -> Records:
    records: Records = request.app.state.sections["monitoring"]
    return records


@api.get("/monitors")
@sends
def monitors(state: Server, words: Words = "", offset: Offset = 0, limit: Limit = 50) -> MonitorPage:
    """Return the monitors of the project: those with open alarms first."""
    return describing.listed(state.project, known_monitors(state), words, offset, limit)


@api.get("/monitors/{name}")
@sends
def one_monitor(request: Request, state: Server, caller: Caller, name: Name) -> MonitorDetails:
    """Return one monitor: what it watches, how it is doing, its alarms."""
    return describing.details(_records(request), state.project, name, may_change=caller.may_run)


@api.get("/monitors/{name}/windows")
@sends
def windows(request: Request, state: Server, name: Name, offset: Offset = 0, limit: Limit = 100) -> WindowPage:
    """Return windows, the oldest first, with how unusual each feature is."""
    return describing.windows(_records(request), state.project, name, offset, limit)


@api.get("/monitors/{name}/errors")
@sends
def errors(request: Request, state: Server, name: Name) -> ErrorPage:
    """Return errors over time, where labels came."""
    return describing.errors(_records(request), state.project, name)


@api.post("/monitors/{name}/alarms/{alarm}/acknowledge", response_model=AlarmAnswer, responses=CHANGES)
@needs(Role.RUN)
@sends
def acknowledge(request: Request, state: Server, name: Name, alarm: AlarmId, note: Note = "") -> AlarmAnswer:
    """Say that a person has seen an alarm, as `cargobike monitor ack` does.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    return describing.acknowledge(_records(request), state.project, name, alarm, note)


@pages.get("/monitors")
def monitors_page(state: Server, templates: Pages, words: Words = "", offset: Offset = 0) -> Response:
    """Return the page with the list of monitors."""
    shown = describing.listed(state.project, known_monitors(state), words, offset, _LISTED)
    return templates.page("monitoring/monitors.html", listed=shown, words=words)


@pages.get("/monitors/{name}")
def monitor_page(request: Request, state: Server, caller: Caller, templates: Pages, name: Name) -> Response:
    """Return the page of one monitor."""
    records = _records(request)
    shown = describing.details(records, state.project, name, may_change=caller.may_run)
    drawn = describing.pictures(records, state.project, name)
    return templates.page("monitoring/monitor.html", shown=shown, drawn=drawn)


def monitoring_section(server: ServerState) -> Section:
    """Make the section of monitors of one server."""
    return Section(
        name="monitoring",
        holds="monitors",
        links=(Link("Monitors", "/monitors", "monitors"),),
        pages=pages,
        api=api,
        package="cargobike.monitoring.pages",
        state=RECORDS,
        cards=(alarm_card(server),),
        documents=lambda: documents(server),
        filters={
            "chance": lambda value: "under 0.1 %" if value < 0.001 else f"{value:.1%}",
            "lasting": _lasting,
        },
    )


def _lasting(seconds: float | None) -> str:
    """Return how long ago something was, in the unit that fits."""
    if seconds is None:
        return "–"
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
