"""The part of the dashboard that models provide: versions, metrics over them, aliases, cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Body, HTTPException, Path, Query
from starlette.responses import Response

from cargobike.core.errors import GateError
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.models.pages import describing
from cargobike.models.pages.answers import ModelDetails, ModelPage, Promoted, VersionDetails, VersionRemarks
from cargobike.models.pages.drawing import charts
from cargobike.models.pages.glancing import documents, model_card, newest_models
from cargobike.ui.markdown import as_html
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.permissions import CHANGES, FAILING_CHANGES, needs
from cargobike.ui.web.roles import Role
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Words = Annotated[str, Query(max_length=200, description="Only models in whose words this occurs.")]
Name = Annotated[str, Path(max_length=200, description="The model's name.")]
Number = Annotated[int, Path(ge=1, le=10**9, description="The version.")]
Alias = Annotated[str, Body(embed=True, max_length=100, description="The alias: `champion`.")]
Gate = Annotated[str, Body(embed=True, max_length=2000, description="The gate: `accuracy >= champion.accuracy`.")]
Tags = Annotated[Sequence[str], Body(embed=True, max_length=100, description="Tags.")]
Note = Annotated[str, Body(embed=True, max_length=20_000, description="What to write down.")]

_SHOWN = 200
_LISTED = 100

pages = APIRouter()
api = APIRouter(tags=["models"], responses=REFUSALS)


@api.get("/models")
@sends
def models(state: Server, words: Words = "", offset: Offset = 0, limit: Limit = 50) -> ModelPage:
    """Return the models of the project by name, each in its newest version."""
    return describing.listed(newest_models(state), words, offset, limit)


@pages.get("/models")
def models_page(state: Server, templates: Pages, words: Words = "", offset: Offset = 0) -> Response:
    """Return the page with the list of models."""
    shown = describing.listed(newest_models(state), words, offset, _LISTED)
    return templates.page("models/models.html", listed=shown, words=words)


@api.get("/models/{name}")
@sends
def one_model(state: Server, name: Name, offset: Offset = 0, limit: Limit = 50) -> ModelDetails:
    """Return one model: its versions, the newest first, its aliases and their history."""
    return describing.details(state.project, name, offset, limit)


@api.get("/models/{name}/{version}")
@sends
def one_version(state: Server, name: Name, version: Number) -> VersionDetails:
    """Return one version: its metrics, signature, files, card, what it was made from and what uses it."""
    return describing.version_details(state.project, name, version, _users(state, name, version))


@api.post("/models/{name}/{version}/promote", response_model=Promoted, responses=FAILING_CHANGES)
@needs(Role.RUN)
@sends
def promote_version(state: Server, name: Name, version: Number, alias: Alias, when: Gate = "") -> Promoted:
    """Let an alias point at a version, if it passes a gate, as `cargobike models promote` does.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    try:
        return describing.promoted(state.project, name, version, alias, when)
    except GateError as error:
        raise HTTPException(409, str(error)) from error


@api.post("/models/{name}/{version}/annotations", response_model=VersionRemarks, responses=CHANGES)
@needs(Role.RUN)
@sends
def annotate_version(
    state: Server, name: Name, version: Number, *, add: Tags = (), remove: Tags = (), note: Note = ""
) -> VersionRemarks:
    """Add tags to a version, take some away, or write something down about it; returns all that is said then.

    Needs `Content-Type: application/json` and a header `X-Cargobike`, which no page of another origin can send.
    """
    return describing.annotated(state.project, name, version, add=add, remove=remove, note=note)


@pages.get("/models/{name}")
def model_page(state: Server, templates: Pages, name: Name, offset: Offset = 0) -> Response:
    """Return the page of one model."""
    shown = describing.details(state.project, name, offset, _SHOWN)
    metrics = describing.measured(state.project, name)
    drawn = charts(metrics, shown.aliases.values())
    return templates.page("models/model.html", shown=shown, charts=drawn, metrics=sorted(metrics)[:8])


@pages.get("/models/{name}/{version}")
def version_page(state: Server, templates: Pages, name: Name, version: Number) -> Response:
    """Return the page of one version."""
    shown = describing.version_details(state.project, name, version, _users(state, name, version))
    return templates.page("models/version.html", shown=shown, card=as_html(shown.card))


def _users(state: ServerState, name: str, version: int) -> Sequence[Edge]:
    return state.edges.uses_of(Thing("model", name, str(version)))


def model_section(server: ServerState) -> Section:
    """Make the section of models of one server."""
    return Section(
        name="models",
        holds="models and their versions",
        links=(Link("Models", "/models", "models"),),
        pages=pages,
        api=api,
        package="cargobike.models.pages",
        cards=(model_card(server),),
        documents=lambda: documents(server),
        filters={"figure": lambda value: "–" if value is None else f"{value:.6g}", "size": _size},
    )


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"
