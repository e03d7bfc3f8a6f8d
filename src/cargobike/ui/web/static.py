"""Style sheets, scripts and Plotly's own script, all from this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Annotated

from fastapi import APIRouter, Header
from starlette.exceptions import HTTPException
from starlette.responses import Response

from cargobike.analysis.plots import plotly_script
from cargobike.ui.web.section import Section

_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_OWN = "cargobike.ui.pages"
PLOTLY = "plotly.js"


def static_routes(sections: Sequence[Section]) -> APIRouter:
    """Make the route of static files: those of the shell, and those of all sections."""
    routes = APIRouter()
    files = static_files([_OWN, *(section.package for section in sections)])

    @routes.get("/static/{name}")
    def static(name: str, known: Annotated[str | None, Header(alias="if-none-match")] = None) -> Response:
        """Return a file that belongs to the pages; others cannot be reached."""
        if name == PLOTLY:
            body, tag = load_plotly()
        elif name in files:
            body, tag = _load(files[name], name)
        else:
            raise HTTPException(404, "There is no such file.")
        headers = {"etag": tag, "cache-control": "max-age=86400" if name == PLOTLY else "no-cache"}
        if known is not None and tag in known:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=_KINDS[name.rpartition(".")[2]], headers=headers)

    return routes


def static_files(packages: Sequence[str]) -> dict[str, str]:
    """Return which of some packages has each file in its folder `static`, by the name of the file.

    Raises:
        ValueError: If two of them have a file of the same name.
    """
    files: dict[str, str] = {}
    for package in packages:
        folder = resources.files(package).joinpath("static")
        for file in folder.iterdir() if folder.is_dir() else ():
            if file.name.rpartition(".")[2] not in _KINDS:
                continue
            if file.name in files or file.name == PLOTLY:
                owner = files.get(file.name, "Plotly")
                raise ValueError(f"Two static files are called {file.name!r}: one of {owner}, one of {package}.")
            files[file.name] = package
    return files


@cache
def load_plotly() -> tuple[bytes, str]:
    """Return Plotly's script with its tag; read once."""
    return _tagged(plotly_script().encode())


@cache
def _load(package: str, name: str) -> tuple[bytes, str]:
    return _tagged(resources.files(package).joinpath("static", name).read_bytes())


def _tagged(body: bytes) -> tuple[bytes, str]:
    return body, f'"{hashlib.sha256(body).hexdigest()[:20]}"'
