"""How a route says which role it needs, and how its caller is checked for it.

A route that only reads says nothing. One that changes something is decorated with `@needs(Role.RUN)`; one that changes
something and says nothing needs the strongest role.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar, cast

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.routing import APIRoute
from starlette.types import Scope

from cargobike.ui.answers import Problem
from cargobike.ui.web.overview.refreshed import PATIENCE_S
from cargobike.ui.web.roles import Role, lacking

_SCOPE: Final = "cargobike.role"
_NEEDED: Final = "needed_role"
_PAGE_S: Final = 1.0
_PROGRAM_S: Final = 20.0
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])

CHANGES: Final[dict[int | str, dict[str, Any]]] = {
    403: {"model": Problem, "description": "The caller's role does not allow it, or a page of another origin asked."},
    415: {"model": Problem, "description": "The request is not JSON."},
}
"""How refusals of routes that change something are documented."""
FAILING_CHANGES: Final[dict[int | str, dict[str, Any]]] = {
    **CHANGES,
    409: {"model": Problem, "description": "It could not be done; says why."},
}
"""The same, for what may turn out to be impossible."""


def admit(scope: Scope, role: Role) -> None:
    """Write down what the caller of a request may do; only the guard does this."""
    scope[_SCOPE] = role


def role_in(scope: Scope) -> Role:
    """Return what the caller of a request may do."""
    return cast("Role", scope.get(_SCOPE, Role.READ))


async def _caller(request: Request) -> Role:
    return role_in(request.scope)


Caller = Annotated[Role, Depends(_caller)]
"""The parameter by which a route gets what its caller may do."""


def needs(role: Role) -> Callable[[_Endpoint], _Endpoint]:
    """Return a decorator for an endpoint that only callers with a role may use."""

    def declare(endpoint: _Endpoint) -> _Endpoint:
        setattr(endpoint, _NEEDED, role)
        return endpoint

    return declare


def role_needed(endpoint: object, method: str) -> Role:
    """Return the role that an endpoint needs when it is asked with a method."""
    return cast("Role", getattr(endpoint, _NEEDED, Role.READ if method in _READING else Role.ADMINISTER))


async def check_role(request: Request) -> None:
    """Let a request pass, or say which role is missing: what all routes depend on."""
    needed, caller = role_needed(request.scope["endpoint"], request.method), role_in(request.scope)
    if not caller.includes(needed):
        raise HTTPException(403, lacking(needed, caller, request.app.state.server.access.most))
    PATIENCE_S.set(_PROGRAM_S if request.scope["path"].startswith("/api/") else _PAGE_S)


def documented(router: APIRouter) -> APIRouter:
    """Return a router whose routes say in the OpenAPI document which role they need, if they change anything.

    It is the extension `x-cargobike-role` of an operation, for programs that offer only what is allowed.
    """
    for route in router.routes:
        inner = getattr(route, "original_router", None)  # newer versions of FastAPI keep routers inside of routers
        if isinstance(inner, APIRouter):
            documented(inner)
        elif isinstance(route, APIRoute):
            roles = [role_needed(route.endpoint, method) for method in route.methods or ()]
            role = max(roles, key=lambda role: role.rank)
            if role is not Role.READ or not set(route.methods or ()) <= _READING:
                route.openapi_extra = {**(route.openapi_extra or {}), "x-cargobike-role": role.value}
    return router
