"""Showing the token once: the browser gets a cookie for it, and the token stays in no address and no history."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, StringConstraints
from starlette.responses import JSONResponse, Response

from cargobike.ui.web.guard import cookie_name
from cargobike.ui.web.start import Server
from cargobike.ui.web.templates import Pages

routes = APIRouter()


class Shown(BaseModel):
    """What a browser shows to be let in."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=500)]


@routes.get("/login")
def login(templates: Pages) -> Response:
    """Return a page that reads the token from the part of its address that is never sent."""
    return templates.login_page()


@routes.post("/login")
def enter(request: Request, shown: Shown, state: Server) -> Response:
    """Exchange the token for a cookie that scripts cannot read and other sites cannot use."""
    if not state.access.accepts(shown.token):
        return JSONResponse({"detail": "That is not the token that this server printed."}, 401)
    response = JSONResponse({"detail": "welcome"})
    response.set_cookie(
        cookie_name(request.scope),
        state.access.cookie,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        max_age=30 * 86400,
    )
    return response


@routes.get("/healthz")
def healthz() -> Response:
    """Tell that the server is there."""
    return JSONResponse({"detail": "here"})
