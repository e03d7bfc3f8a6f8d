"""The part of the dashboard that one product provides: pages, REST routes, and the files behind them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter

from cargobike.core.registering.lazy import in_words, load
from cargobike.core.registering.products import products
from cargobike.ui.web.overview.cards import Card
from cargobike.ui.web.overview.searching import Documents
from cargobike.ui.web.state import ServerState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of the navigation at the top of every page."""

    word: str
    address: str
    name: str
    """What a template says in `here` to mark this entry as the current one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What a product gives the server. It is made once for each server, by the function that `Product.pages` names.

    Attributes:
        name: The product's name: its templates are called `NAME/….html`.
        holds: What its API is about, for the first sentence of the OpenAPI document.
        links: Its entries in the navigation.
        pages: Its pages, mounted at the root of the address.
        api: Its REST routes, mounted below `/api/v1`.
        package: Where its folders `templates` and `static` lie; names of static files are unique in the whole server.
        state: What its routes find as `request.app.state.sections[name]`.
        filters: What its templates can do with values, by name.
        cards: What it says on the start page.
        documents: Lists what of it can be found by search; called in the background.
        prepare: Loads what the first page needs, in the background, before it is asked for.
        close: Closes what is open when the server ends.
    """

    name: str
    holds: str = ""
    links: tuple[Link, ...] = ()
    pages: APIRouter | None = None
    api: APIRouter | None = None
    package: str
    state: object = None
    filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    cards: tuple[Card, ...] = ()
    documents: Documents | None = None
    prepare: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


MakeSection = Callable[[ServerState], Section]


def registered_sections(state: ServerState) -> Sequence[Section]:
    """Make the sections of all products that registered one, in the order of the products.

    One whose libraries are not installed is left out; `cargobike -v ui` says what it needs.
    """
    makers: list[MakeSection] = []
    for product in products():
        if not product.pages:
            continue
        try:
            makers.append(load(product.pages))
        except ModuleNotFoundError as error:
            problem = in_words(error, f"The section {product.title!r} of the dashboard", product.extra)
            if problem is error:
                raise
            _log.info("%s", problem)
    return [make(state) for make in makers]
