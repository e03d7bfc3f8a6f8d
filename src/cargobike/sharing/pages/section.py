"""The part of the dashboard that sharing provides: networks, what is published in them, and what is transferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import StringConstraints
from starlette.responses import RedirectResponse, Response

from cargobike.core.errors import InvalidInputError
from cargobike.sharing.catalogue.entry import Question
from cargobike.sharing.daemon.control import ask_daemon
from cargobike.sharing.daemon.messages import Pause, Request, Resume, SetLimits
from cargobike.sharing.identity.keys import short
from cargobike.sharing.pages import describing
from cargobike.sharing.pages.answers import Changed, HolderList, NetworkDetails, NetworkList, PublicationDetails
from cargobike.sharing.pages.glancing import documents, sharing_card
from cargobike.sharing.publishing.visible import size_words
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.permissions import CHANGES, Caller, needs
from cargobike.ui.web.roles import Role
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

NetworkName = Annotated[str, Path(max_length=64, description="The network.")]
Name = Annotated[str, Path(max_length=100, description="What the publication is called.")]
Words = Annotated[str, Query(max_length=200, description="Words in name, description, tags or columns.")]
Tag = Annotated[str, Query(max_length=60, description="Only publications with this tag.")]
Column = Annotated[str, Query(max_length=200, description="Only those whose rows have this column.")]
Publisher = Annotated[str, Query(max_length=60, description="A key, the beginning of one, or a name given here.")]
Kind = Annotated[Literal["", "table", "dataset", "model", "folder", "url"], Query(description="What it is.")]
Version = Annotated[int | None, Query(ge=1, le=2**31, description="The version; else the newest.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Rate = Annotated[str | None, Query(max_length=40, description="Such as `20MB/s`, or `none`.")]
Members = Annotated[
    Sequence[Annotated[str, StringConstraints(max_length=120)]],
    Query(max_length=100, description="`KEY=RATE` for one member; may be repeated."),
]
Hours = Annotated[
    Sequence[Annotated[str, StringConstraints(max_length=120)]],
    Query(max_length=100, description="Such as `mon-fri 08:00-18:00 send=2MB/s`; may be repeated."),
]
GivesWay = Annotated[bool | None, Query(description="Whether transfers make room for other traffic.")]
Size = Annotated[int | None, Query(ge=0, le=2**62, description="Bytes.")]

pages = APIRouter()
api = APIRouter(tags=["sharing"], responses=REFUSALS)


@api.get("/sharing")
@sends
def networks(state: Server) -> NetworkList:
    """Return the networks that the project shares in, and its key."""
    return describing.networks(state.project)


@api.get("/sharing/{network}")
@sends
def one_network(
    state: Server,
    caller: Caller,
    network: NetworkName,
    *,
    words: Words = "",
    tag: Tag = "",
    column: Column = "",
    publisher: Publisher = "",
    kind: Kind = "",
    min_size: Size = None,
    max_size: Size = None,
    limit: Limit = 100,
) -> NetworkDetails:
    """Return what is found in a network, and what its daemon does."""
    question = Question(
        words=tuple(words.split()),
        tags=(tag,) if tag else (),
        columns=(column,) if column else (),
        publisher=publisher,
        kind=kind,
        least_bytes=min_size or 0,
        most_bytes=max_size,
        limit=limit,
    )
    return describing.details(state.project, network, question, may_change=caller.may_run)


@api.get("/sharing/{network}/publications/{name}")
@sends
def one_publication(
    state: Server, network: NetworkName, name: Name, publisher: Publisher = "", version: Version = None
) -> PublicationDetails:
    """Return a publication: columns, sample, files, ratings and comments."""
    return describing.publication(state.project, network, name, publisher, version)


@api.get("/sharing/{network}/publications/{name}/holders")
@sends
def holders_of_one(
    state: Server, network: NetworkName, name: Name, publisher: Publisher = "", version: Version = None
) -> HolderList:
    """Have the daemon ask all members how much of a publication they have, as `cargobike share who` does."""
    return describing.holders(state.project, network, name, publisher, version)


@api.post("/sharing/{network}/pause", response_model=Changed, responses=CHANGES)
@needs(Role.RUN)
@sends
def pause(state: Server, network: NetworkName) -> Changed:
    """Have the daemon give no pieces, as `cargobike share pause` does."""
    return _asked(state, network, Pause(), "paused")


@api.post("/sharing/{network}/resume", response_model=Changed, responses=CHANGES)
@needs(Role.RUN)
@sends
def resume(state: Server, network: NetworkName) -> Changed:
    """Have the daemon give pieces again."""
    return _asked(state, network, Resume(), "giving")


@api.post("/sharing/{network}/limits", response_model=Changed, responses=CHANGES)
@needs(Role.ADMINISTER)
@sends
def limit_rates(
    state: Server,
    network: NetworkName,
    *,
    send: Rate = None,
    receive: Rate = None,
    member: Members = (),
    hours: Hours = (),
    gives_way: GivesWay = None,
) -> Changed:
    """Limit how fast the daemon sends and receives, as `cargobike share limit` does."""
    pairs = {key: rate for key, _, rate in (text.rpartition("=") for text in member) if key}
    if len(pairs) != len(member):
        raise InvalidInputError("Write the key of a member and a rate: member=ed25519:…=5MB/s.")
    limits = SetLimits(send=send, receive=receive, peers=pairs or None, hours=tuple(hours) or None, gives_way=gives_way)
    return _asked(state, network, limits, "limited")


@pages.get("/sharing")
def networks_page(state: Server, templates: Pages) -> Response:
    """Return the page with the networks of the project."""
    return templates.page("sharing/networks.html", listed=describing.networks(state.project))


@pages.get("/sharing/{network}")
def network_page(
    state: Server,
    caller: Caller,
    templates: Pages,
    network: NetworkName,
    *,
    words: Words = "",
    tag: Tag = "",
    column: Column = "",
    publisher: Publisher = "",
) -> Response:
    """Return the page of one network: what is published, and what is transferred."""
    question = Question(
        words=tuple(words.split()),
        tags=(tag,) if tag else (),
        columns=(column,) if column else (),
        publisher=publisher,
        limit=500,
    )
    shown = describing.details(state.project, network, question, may_change=caller.may_run)
    return templates.page("sharing/network.html", shown=shown, words=words, tag=tag, column=column, publisher=publisher)


@pages.get("/sharing/{network}/publications/{name}")
def publication_page(
    state: Server,
    templates: Pages,
    network: NetworkName,
    name: Name,
    *,
    publisher: Publisher = "",
    version: Version = None,
) -> Response:
    """Return the page of one publication."""
    shown = describing.publication(state.project, network, name, publisher, version)
    return templates.page("sharing/publication.html", shown=shown)


@pages.get("/shared/{reference}")
def found_page(state: Server, reference: Annotated[str, Path(max_length=200)]) -> Response:
    """Lead to the page of a publication, in whichever network it is."""
    return RedirectResponse(describing.find_page(state.project, reference))


def sharing_section(server: ServerState) -> Section:
    """Make the section of sharing of one server."""
    return Section(
        name="sharing",
        holds="networks and what is published in them",
        links=(Link("Sharing", "/sharing", "sharing"),),
        pages=pages,
        api=api,
        package="cargobike.sharing.pages",
        cards=(sharing_card(server.project),),
        documents=lambda: documents(server.project),
        filters={"bytes": lambda size: size_words(int(size or 0)), "short_key": short},
    )


def _asked(state: ServerState, network: str, request: Request, words: str) -> Changed:
    ask_daemon(state.project, network, request)
    return Changed(words=words)
