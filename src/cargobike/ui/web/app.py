"""The application: the API and the pages behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from cargobike.core.errors import CargobikeError, InvalidInputError, NotFoundError
from cargobike.core.version import __version__
from cargobike.experiments.pages.api.comparing import compare_routes
from cargobike.experiments.pages.api.events import event_routes
from cargobike.experiments.pages.api.experiments import experiment_routes
from cargobike.experiments.pages.api.figures import figure_routes
from cargobike.experiments.pages.api.files import file_routes
from cargobike.experiments.pages.api.trials import trial_routes
from cargobike.experiments.pages.pages import error_page, page_routes
from cargobike.experiments.pages.state import ServerState
from cargobike.ui.web.guard import Guard
from cargobike.ui.web.login import login_routes
from cargobike.ui.web.static import static_routes

_ROUTES = (experiment_routes, trial_routes, figure_routes, file_routes, compare_routes, event_routes)


def create_app(state: ServerState) -> FastAPI:
    """Make the application of one project: an ASGI application that any server can run."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        state.closing.set()
        state.listing.close()

    app = FastAPI(
        title="Cargobike",
        version=__version__,
        description="Experiments, trials, metrics, logs, files and figures of one project.",
        openapi_url="/api/v1/openapi.json",
        # Their pages load scripts from elsewhere; this server works without a network and lets no such script in.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    for routes in _ROUTES:
        app.include_router(routes(state), prefix="/api/v1")
    for pages in (login_routes, page_routes, static_routes):
        app.include_router(pages(state), include_in_schema=False)
    app.add_exception_handler(CargobikeError, _told)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(Guard, access=state.access)
    return app


def _told(request: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, NotFoundError) else 422 if isinstance(error, InvalidInputError) else 503
    return _answer(request, status, str(error))


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = _answer(request, error.status_code, str(error.detail))
    response.headers.update(error.headers or {})
    return response


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    mistakes = [{"where": [str(part) for part in each["loc"]], "what": each["msg"]} for each in error.errors()]
    if _is_page(request):
        return error_page(404, "There is no such page.")
    return JSONResponse({"detail": mistakes}, 422)


def _answer(request: Request, status: int, why: str) -> Response:
    return error_page(status, why) if _is_page(request) else JSONResponse({"detail": why}, status)


def _is_page(request: Request) -> bool:
    return not request.url.path.startswith("/api/")
