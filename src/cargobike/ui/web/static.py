"""Style sheets, scripts and Plotly's own script, all from this machine."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Annotated

from fastapi import APIRouter, Header
from starlette.exceptions import HTTPException
from starlette.responses import Response

from cargobike.analysis.plots import plotly_script
from cargobike.experiments.pages.state import ServerState

_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_FOLDER = resources.files("cargobike.ui.pages").joinpath("static")
_NAMES = frozenset(each.name for each in _FOLDER.iterdir() if each.name.rpartition(".")[2] in _KINDS)
PLOTLY = "plotly.js"


def static_routes(_: ServerState) -> APIRouter:
    """Make the route of static files."""
    routes = APIRouter()

    @routes.get("/static/{name}")
    def static(name: str, known: Annotated[str | None, Header(alias="if-none-match")] = None) -> Response:
        """Return a file that belongs to the pages; no other can be named."""
        if name != PLOTLY and name not in _NAMES:
            raise HTTPException(404, "There is no such file.")
        body, tag = load_static(name)
        headers = {"etag": tag, "cache-control": "max-age=86400" if name == PLOTLY else "no-cache"}
        if known is not None and tag in known:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=_KINDS[name.rpartition(".")[2]], headers=headers)

    return routes


@cache
def load_static(name: str) -> tuple[bytes, str]:
    """Return a file of the pages with its tag; read once."""
    body = plotly_script().encode() if name == PLOTLY else _FOLDER.joinpath(name).read_bytes()
    return body, f'"{hashlib.sha256(body).hexdigest()[:20]}"'
