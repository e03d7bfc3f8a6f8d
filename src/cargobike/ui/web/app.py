"""The application: what products registered, behind one guard."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from cargobike.core.errors import CargobikeError, InvalidInputError, NotFoundError, StillReadingError
from cargobike.core.version import __version__
from cargobike.ui.answers import Mistake, Problem
from cargobike.ui.web import login, start
from cargobike.ui.web.answering import answer
from cargobike.ui.web.guard import Guard
from cargobike.ui.web.overview import routes as overview
from cargobike.ui.web.overview.cards import Cards
from cargobike.ui.web.overview.searching import Search
from cargobike.ui.web.permissions import check_role, documented, role_in
from cargobike.ui.web.section import Section, registered_sections
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.static import static_routes
from cargobike.ui.web.templates import Templates
from cargobike.ui.web.tracing import lineage

_log = logging.getLogger(__name__)


def create_app(state: ServerState, sections: Sequence[Section] | None = None) -> FastAPI:
    """Make the application of one project: an ASGI application that any server can run.

    Args:
        state: The project, and the rules of access.
        sections: The sections to show; by default those that products registered.
    """
    sections = registered_sections(state) if sections is None else sections

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        state.closing.set()
        for section in sections:
            section.close()

    holds = "; ".join(section.holds for section in sections if section.holds) or "what it holds"
    app = FastAPI(
        title="Cargobike",
        version=__version__,
        description=f"{holds[:1].upper()}{holds[1:]} of one project.",
        openapi_url="/api/v1/openapi.json",
        # FastAPI's own pages load scripts from elsewhere; this server works without a network and forbids such scripts.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.server = state
    app.state.templates = Templates(state.project, sections)
    app.state.cards = Cards([card for section in sections for card in section.cards])
    app.state.search = Search({section.name: section.documents for section in sections if section.documents})
    app.state.sections = {section.name: section.state for section in sections}
    allowed = [Depends(check_role)]
    for api in (start.api, overview.api, lineage.api, *(section.api for section in sections if section.api)):
        app.include_router(documented(api), prefix="/api/v1", dependencies=allowed)
    # The first page of an address counts: a section may have the start page for itself.
    own = (lineage.pages, overview.pages)
    for pages in (login.routes, *(section.pages for section in sections if section.pages), *own):
        app.include_router(pages, include_in_schema=False, dependencies=allowed)
    app.include_router(static_routes(sections), include_in_schema=False)
    app.add_exception_handler(CargobikeError, _told)
    for unreadable in (OSError, RecursionError, ArithmeticError):
        app.add_exception_handler(unreadable, _unreadable)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(Guard, access=state.access)
    return app


def _told(request: Request, error: Exception) -> Response:
    if isinstance(error, StillReadingError):
        return _still_reading(request, error)
    status = 404 if isinstance(error, NotFoundError) else 422 if isinstance(error, InvalidInputError) else 503
    mistakes = [Mistake([], mistake) for mistake in getattr(error, "mistakes", ())]
    return _answer(request, status, Problem(str(error), mistakes, list(getattr(error, "nearest", ()))))


def _still_reading(request: Request, error: StillReadingError) -> Response:
    """Answer with a page that asks again by itself; programs do that, too."""
    templates: Templates = request.app.state.templates
    if _is_page(request):
        response = templates.for_caller(role_in(request.scope)).page("reading.html")
    else:
        response = answer(Problem(str(error)), status=503)
    response.headers["retry-after"] = "1"
    return response


def _unreadable(request: Request, error: Exception) -> Response:
    """Answer for what lies in the project and cannot be shown: a file out of reach, nesting without end."""
    _log.warning("%s cannot be shown", request.scope["path"], exc_info=error)
    return _answer(request, 503, Problem(f"This cannot be shown: {error}."))


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = _answer(request, error.status_code, Problem(str(error.detail)))
    response.headers.update(error.headers or {})
    return response


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    if _is_page(request):
        return _answer(request, 404, Problem("There is no such page."))
    mistakes = [Mistake([str(part) for part in each["loc"]], each["msg"]) for each in error.errors()]
    words = "; ".join(f"{'.'.join(mistake.where)}: {mistake.what}" for mistake in mistakes)
    return answer(Problem(f"The request cannot be used: {words}.", mistakes), status=422)


def _answer(request: Request, status: int, problem: Problem) -> Response:
    if not _is_page(request):
        return answer(problem, status=status)
    templates: Templates = request.app.state.templates
    return templates.for_caller(role_in(request.scope)).error_page(status, problem.detail)


def _is_page(request: Request) -> bool:
    return not str(request.scope["path"]).startswith("/api/")  # of the whole address, the query may not be UTF-8
