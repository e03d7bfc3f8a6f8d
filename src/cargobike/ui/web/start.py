"""The shell's own routes: about the server, and a start page where no product has one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from cargobike.core.version import __version__
from cargobike.ui.answers import ServerInfo
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages


async def _server(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


Server = Annotated[ServerState, Depends(_server)]
"""The parameter by which a route gets the project and the rules of access."""

api = APIRouter(tags=["server"], responses=REFUSALS)
pages = APIRouter()


@api.get("/server")
@sends
def server(state: Server) -> ServerInfo:
    """Return what there is to know about this server."""
    return ServerInfo(version=__version__, project=str(state.project.root), may_stop=state.access.may_stop)


@pages.get("/")
def start(templates: Pages) -> Response:
    """Return a page with links to all sections."""
    return templates.page("start.html")
