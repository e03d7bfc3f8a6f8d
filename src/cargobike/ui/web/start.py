"""About the server itself, and the parameter by which routes get it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from cargobike.core.version import __version__
from cargobike.ui.answers import ServerInfo
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.permissions import Caller
from cargobike.ui.web.state import ServerState


async def _server(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


Server = Annotated[ServerState, Depends(_server)]
"""The parameter by which a route gets the project and the rules of access."""

api = APIRouter(tags=["server"], responses=REFUSALS)


@api.get("/server")
@sends
def server(state: Server, caller: Caller) -> ServerInfo:
    """Return what there is to know about this server, and what the caller may do here."""
    return ServerInfo(version=__version__, project=str(state.project.root), may_stop=caller.may_run, role=caller.value)
