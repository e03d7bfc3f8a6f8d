"""Lineage in the dashboard: what something came from and what came from it, as a page and as an answer of the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from cargobike.core.errors import NotFoundError
from cargobike.core.registering.lineage_trees import tree_of
from cargobike.core.registering.tracing import Edge, Thing, find_things, page_of, reached_from
from cargobike.ui.answers import KeptThing, LineageAnswer, Step, Use
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages
from cargobike.ui.web.tracing.addresses import lineage_address
from cargobike.ui.web.tracing.drawing import draw
from cargobike.ui.web.tracing.graph import graph_of

Kind = Annotated[str, Path(max_length=40, description="`group`, `view`, `dataset`, `table`, `experiment`, …")]
Name = Annotated[str, Path(max_length=2000, description="Its name.")]
Version = Annotated[str, Query(max_length=40, description="Its version; by default all.")]
Limit = Annotated[int, Query(ge=1, le=100_000, description="How many steps to return at most, in each direction.")]

_MOST_TREES: Final = 20
_WEIGHT: Final = {
    kind: place
    for place, kind in enumerate(
        ("deployment", "model", "monitor", "dataset", "view", "group", "table", "file", "experiment", "pipeline")
    )
}

pages = APIRouter()
api = APIRouter(tags=["lineage"], responses=REFUSALS)


@api.get("/lineage/{kind}/{name:path}")
@sends
def lineage(state: Server, kind: Kind, name: Name, version: Version = "", limit: Limit = 1000) -> LineageAnswer:
    """Return what something came from, and what came from it, over all products."""
    known = state.edges.known()
    try:
        things = known.find(Thing(kind, name, version).id, kind)
    except NotFoundError:
        things = find_things(known.edges, Thing(kind, name, version).id, kind)  # says which names are near
    found, titles = known.around(things), known.titles
    return LineageAnswer(
        things=[kept_thing(thing, titles.get(thing, "")) for thing in things],
        came_from=[_step(edge, titles) for edge in found.sources[:limit]],
        used_by=[_step(edge, titles) for edge in found.uses[:limit]],
        total_came_from=len(found.sources),
        total_used_by=len(found.uses),
        problems=known.problems,
    )


@pages.get("/lineage/{kind}/{name:path}")
def lineage_page(state: Server, templates: Pages, kind: Kind, name: Name, version: Version = "") -> Response:
    """Return the page with what something came from, and what came from it.

    Other pages lead here also for what has no lineage yet, so that is no error.
    """
    known = state.edges.known()
    problems = list(known.problems)
    wanted = Thing(kind, name, version)
    try:
        things = known.find(wanted.id, kind)
    except NotFoundError as error:
        things = [wanted]
        problems.append(str(error))
    middle = things[-1]  # the newest version
    found = known.around([middle])
    # A model that was trained because of an alarm need not be trained again when what raised it was wrong.
    kept = [edge for edge in found.uses if edge.relation != "triggered by"]
    return templates.page(
        "lineage.html",
        wanted=wanted,
        middle=middle,
        graph=draw(graph_of(found, middle), middle, known.titles),
        inputs=_by_kind(edge.source for edge in found.sources),
        affected=_by_kind(edge.made for edge in reached_from(kept, [middle]).uses),
        trees=[*(tree_of(known.around([thing]), thing) for thing in things[-_MOST_TREES:-1]), tree_of(found, middle)],
        others=things[:-1],
        titles=known.titles,
        page_of=page_of,
        address_of=lineage_address,
        problems=problems,
    )


def _by_kind(things: Iterable[Thing]) -> dict[str, list[Thing]]:
    """Return each thing once, by its kind, those that matter most first."""
    kinds: dict[str, list[Thing]] = {}
    for thing in dict.fromkeys(things):
        kinds.setdefault(thing.kind, []).append(thing)
    return dict(sorted(kinds.items(), key=lambda item: (_WEIGHT.get(item[0], len(_WEIGHT)), item[0])))


def kept_thing(thing: Thing, title: str = "") -> KeptThing:
    """Return a thing as the API names it."""
    return KeptThing(kind=thing.kind, name=thing.name, version=thing.version, title=title, page=page_of(thing))


def uses_of(state: ServerState, thing: Thing) -> list[Use]:
    """Return what was directly made from a thing, trained on it or serves it, for its page."""
    return [
        Use(thing=kept_thing(edge.made, edge.title), relation=edge.relation, detail=edge.detail)
        for edge in state.edges.uses_of(thing)
    ]


def _step(edge: Edge, titles: Mapping[Thing, str]) -> Step:
    made, source = (kept_thing(end, titles.get(end, "")) for end in (edge.made, edge.source))
    return Step(made=made, source=source, relation=edge.relation, detail=edge.detail)
