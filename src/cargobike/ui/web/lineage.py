"""Lineage in the dashboard: what something came from and what came from it, as a page and as an answer of the API."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from cargobike.core.errors import NotFoundError
from cargobike.core.registering.lineage_trees import Trees, trees_of
from cargobike.core.registering.tracing import (
    Edge,
    Thing,
    all_edges,
    find_things,
    page_of,
    reached_from,
    titles_of,
    users_of,
)
from cargobike.ui.answers import KeptThing, LineageAnswer, Step, Use
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

Kind = Annotated[str, Path(max_length=40, description="`group`, `view`, `dataset`, `table`, `experiment`, …")]
Name = Annotated[str, Path(max_length=2000, description="Its name.")]
Version = Annotated[str, Query(max_length=40, description="Its version; by default all.")]
Limit = Annotated[int, Query(ge=1, le=100_000, description="How many steps to return at most, in each direction.")]

_log = logging.getLogger(__name__)

pages = APIRouter()
api = APIRouter(tags=["lineage"], responses=REFUSALS)


@api.get("/lineage/{kind}/{name:path}")
@sends
def lineage(state: Server, kind: Kind, name: Name, version: Version = "", limit: Limit = 1000) -> LineageAnswer:
    """Return what something came from, and what came from it, over all products."""
    problems: list[str] = []
    edges = list(all_edges(state.project, problems))
    things = find_things(edges, Thing(kind, name, version).id, kind)
    found, titles = reached_from(edges, things), titles_of(edges)
    return LineageAnswer(
        things=[kept_thing(thing, titles.get(thing, "")) for thing in things],
        came_from=[_step(edge, titles) for edge in found.sources[:limit]],
        used_by=[_step(edge, titles) for edge in found.uses[:limit]],
        total_came_from=len(found.sources),
        total_used_by=len(found.uses),
        problems=problems,
    )


@pages.get("/lineage/{kind}/{name:path}")
def lineage_page(state: Server, templates: Pages, kind: Kind, name: Name, version: Version = "") -> Response:
    """Return the page with what something came from, and what came from it.

    Other pages lead here also for what has no lineage yet, so that is no error.
    """
    problems: list[str] = []
    edges = list(all_edges(state.project, problems))
    wanted = Thing(kind, name, version)
    try:
        trees = trees_of(edges, find_things(edges, wanted.id, kind))
    except NotFoundError as error:
        trees = [Trees(wanted, [], [])]
        problems.append(str(error))
    return templates.page(
        "lineage.html",
        wanted=wanted,
        trees=trees,
        titles=titles_of(edges),
        page_of=page_of,
        address_of=lineage_address,
        problems=problems,
    )


def lineage_address(thing: Thing) -> str:
    """Return the address of the page with the lineage of a thing."""
    version = f"?version={quote(thing.version)}" if thing.version else ""
    return f"/lineage/{quote(thing.kind)}/{quote(thing.name)}{version}"


def kept_thing(thing: Thing, title: str = "") -> KeptThing:
    """Return a thing as the API names it."""
    return KeptThing(kind=thing.kind, name=thing.name, version=thing.version, title=title, page=page_of(thing))


def uses_of(state: ServerState, thing: Thing) -> list[Use]:
    """Return what was directly made from a thing, trained on it or serves it, for its page."""
    problems: list[str] = []
    edges = users_of(state.project, thing, problems)
    for problem in problems:
        _log.warning("%s", problem)
    return [Use(thing=kept_thing(edge.made, edge.title), relation=edge.relation, detail=edge.detail) for edge in edges]


def _step(edge: Edge, titles: Mapping[Thing, str]) -> Step:
    made, source = (kept_thing(end, titles.get(end, "")) for end in (edge.made, edge.source))
    return Step(made=made, source=source, relation=edge.relation, detail=edge.detail)
