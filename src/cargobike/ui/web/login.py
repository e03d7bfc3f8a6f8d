"""Showing the token once: the browser gets a cookie for it, so that the token is not kept in any address or history."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, StringConstraints
from starlette.responses import JSONResponse, Response

from cargobike.ui.web.guard import cookie_name
from cargobike.ui.web.permissions import needs
from cargobike.ui.web.roles import Role
from cargobike.ui.web.start import Server
from cargobike.ui.web.templates import Pages
from cargobike.ui.web.tokens import cookie_for

routes = APIRouter()


class Login(BaseModel):
    """The token that a browser sends to get access."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=500)]


@routes.get("/login")
def login_page(templates: Pages) -> Response:
    """Return a page that reads the token from the part of its address that is never sent."""
    return templates.login_page()


@routes.post("/login")
@needs(Role.READ)
def enter(request: Request, login: Login, state: Server) -> Response:
    """Exchange the token for a cookie that scripts cannot read and other sites cannot use."""
    role = state.access.role_of_token(login.token)
    if role is None:
        return JSONResponse({"detail": "That is neither the token that this server printed, nor one given out."}, 401)
    response = JSONResponse({"detail": "welcome", "role": role})
    response.set_cookie(
        cookie_name(request.scope),
        cookie_for(login.token),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        max_age=30 * 86400,
    )
    return response


@routes.get("/healthz")
def healthz() -> Response:
    """Answer that the server is running."""
    return JSONResponse({"detail": "here"})
