"""The start page, and search, as pages and as answers of the API."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from cargobike.core.values.times import on_calendar
from cargobike.ui.answers import SearchAnswer, SearchHit
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Cards
from cargobike.ui.web.overview.searching import Found, Hit, Search
from cargobike.ui.web.templates import Pages

Asked = Annotated[str, Query(max_length=200, description="Words that all must occur.")]
Kind = Annotated[str, Query(max_length=40, description="Only things of this kind: `model`, `table`, `experiment`, …")]
Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many to return at most.")]
Fragment = Annotated[bool, Query(description="Only what changes.")]

_PAGE: Final = 50
_PATIENCE_S: Final = 0.7

api = APIRouter(tags=["search"], responses=REFUSALS)
pages = APIRouter()


@api.get("/search")
@sends
def search(request: Request, q: Asked = "", kind: Kind = "", offset: Offset = 0, limit: Limit = 20) -> SearchAnswer:
    """Return things of all products in whose names, tags, descriptions, columns or ids all words occur."""
    return _answer(_search(request).find(q, kind=kind, offset=offset, limit=limit), offset, limit)


@pages.get("/search")
def search_page(request: Request, templates: Pages, *, q: Asked = "", kind: Kind = "", offset: Offset = 0) -> Response:
    """Return the page with what fits some words."""
    found = _search(request).find(q, kind=kind, offset=offset, limit=_PAGE, patience_s=1.0)
    return templates.page("search.html", found=_answer(found, offset, _PAGE), q=q, kind=kind)


@pages.get("/")
def start(request: Request, templates: Pages, fragment: Fragment = False) -> Response:
    """Return the start page, or with `fragment` its cards."""
    if not fragment and request.query_params:
        return RedirectResponse(f"/experiments?{request.url.query}", 303)  # where the list of experiments was before
    cards: Cards = request.app.state.cards
    shown = cards.shown(_PATIENCE_S)
    return templates.page("cards.html" if fragment else "start.html", cards=shown, most=MOST_ENTRIES)


def _search(request: Request) -> Search:
    search: Search = request.app.state.search
    return search


def _answer(found: Found, offset: int, limit: int) -> SearchAnswer:
    return SearchAnswer(
        hits=[_hit(hit) for hit in found.hits],
        kinds=found.kinds,
        total=found.total,
        offset=offset,
        limit=limit,
        is_complete=found.is_complete,
        problems=found.problems,
    )


def _hit(hit: Hit) -> SearchHit:
    document = hit.document
    return SearchHit(
        kind=document.kind,
        name=document.name,
        page=document.address,
        text=document.text,
        tags=list(document.tags),
        where=hit.where,
        at=on_calendar(document.at).isoformat(timespec="seconds") if document.at else "",
    )
