"""The part of the dashboard that serving provides: deployments, live, with releases."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, HTTPException, Path, Query
from starlette.responses import Response

from cargobike.core.errors import DeploymentError
from cargobike.serving.pages import describing
from cargobike.serving.pages.answers import DeploymentDetails, DeploymentPage, LastRequests, Release, Tail
from cargobike.serving.pages.glancing import deployment_card, documents, known_deployments
from cargobike.serving.pages.releasing import begin
from cargobike.ui.web.answering import REFUSALS, answer, sends
from cargobike.ui.web.permissions import FAILING_CHANGES, Caller, needs
from cargobike.ui.web.roles import Role
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Words = Annotated[str, Query(max_length=200, description="Only deployments in whose name or model this occurs.")]
Name = Annotated[str, Path(max_length=100, description="Its name.")]
Replicas = Annotated[int, Body(embed=True, ge=0, le=10_000, description="A number of replicas.")]
Reference = Annotated[str, Body(embed=True, max_length=200, description="A version of its model: `digits:4`.")]


_LISTED = 100

pages = APIRouter()
api = APIRouter(tags=["deployments"], responses=REFUSALS)


@api.get("/deployments")
@sends
def deployments(state: Server, words: Words = "", offset: Offset = 0, limit: Limit = 50) -> DeploymentPage:
    """Return the deployments of the project by name, and how they are doing."""
    return describing.listed(state.project, known_deployments(state), words, offset, limit)


@pages.get("/deployments")
def deployments_page(state: Server, templates: Pages, words: Words = "", offset: Offset = 0) -> Response:
    """Return the page with the list of deployments."""
    shown = describing.listed(state.project, known_deployments(state), words, offset, _LISTED)
    return templates.page("serving/deployments.html", listed=shown, words=words)


@api.get("/deployments/{name}")
@sends
def one_deployment(state: Server, caller: Caller, name: Name) -> DeploymentDetails:
    """Return one deployment: versions and their shares, replicas, traffic, what happened to it."""
    return describing.details(state.project, name, may_change=caller.may_run)


@api.get("/deployments/{name}/output")
@sends
def output(state: Server, name: Name, lines: Annotated[int, Query(ge=1, le=2000)] = 100) -> Tail:
    """Return the last lines that the processes of a deployment printed."""
    return describing.tail(state.project, name, lines)


@api.get("/deployments/{name}/requests")
@sends
def requests(state: Server, name: Name, limit: Annotated[int, Query(ge=1, le=1000)] = 20) -> LastRequests:
    """Return the last requests of the inference log, without their content."""
    return describing.last_requests(state.project, name, limit)


@api.post("/deployments/{name}/roll", status_code=202, response_model=Release, responses=FAILING_CHANGES)
@needs(Role.RUN)
def roll(state: Server, name: Name, model: Reference) -> Response:
    """Bring another version in, as `cargobike deployments roll` does; the state shows when it serves.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    handle = describing.found(state.project, name)
    return _released(state, name, lambda: handle.roll(model))


@api.post("/deployments/{name}/rollback", status_code=202, response_model=Release, responses=FAILING_CHANGES)
@needs(Role.RUN)
def rollback(state: Server, name: Name) -> Response:
    """Take back the version that is being brought in, or go back to the one before.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    handle = describing.found(state.project, name)
    return _released(state, name, lambda: handle.rollback(reason="asked for in the dashboard"))


@api.post("/deployments/{name}/promote", status_code=202, response_model=Release, responses=FAILING_CHANGES)
@needs(Role.RUN)
def promote(state: Server, name: Name) -> Response:
    """Give all requests to the version that is watched, as `cargobike deployments promote` does.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    handle = describing.found(state.project, name)
    return _released(state, name, handle.promote)


@api.post("/deployments/{name}/scale", status_code=202, response_model=Release, responses=FAILING_CHANGES)
@needs(Role.RUN)
def scale(state: Server, name: Name, least: Replicas, most: Replicas) -> Response:
    """Change how many replicas there are: the fewest and the most, as `cargobike deployments scale` does.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    if least > most or not most:
        raise HTTPException(422, f"The fewest ({least}) are at most the most ({most}), which are at least 1.")
    handle = describing.found(state.project, name)
    return _released(state, name, lambda: handle.scale((least, most)))


@api.post("/deployments/{name}/stop", status_code=202, response_model=Release, responses=FAILING_CHANGES)
@needs(Role.RUN)
def stop(state: Server, name: Name) -> Response:
    """Answer what is there and end all its processes, as `cargobike deployments stop` does.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    handle = describing.found(state.project, name)
    return _released(state, name, handle.stop)


@pages.get("/deployments/{name}")
def deployment_page(state: Server, caller: Caller, templates: Pages, name: Name) -> Response:
    """Return the page of one deployment."""
    shown = describing.details(state.project, name, may_change=caller.may_run)
    text = describing.tail(state.project, name, 100).text
    kept = describing.last_requests(state.project, name, 10)
    return templates.page("serving/deployment.html", shown=shown, output=text, kept=kept)


def serving_section(server: ServerState) -> Section:
    """Make the section of deployments of one server."""
    return Section(
        name="serving",
        holds="deployments",
        links=(Link("Deployments", "/deployments", "deployments"),),
        pages=pages,
        api=api,
        package="cargobike.serving.pages",
        cards=(deployment_card(server),),
        documents=lambda: documents(server),
        filters={
            "ms": lambda value: "–" if value is None else f"{value:.1f} ms",
            "percent": lambda value: f"{value:.0%}",
        },
    )


def _released(state: ServerState, name: str, action: object) -> Response:
    try:
        begin(action)  # type: ignore[arg-type]
    except DeploymentError as error:
        raise HTTPException(409, str(error)) from error
    status = describing.found(state.project, name).status()
    return answer(Release(status.state, status.version, status.candidate), status=202)
