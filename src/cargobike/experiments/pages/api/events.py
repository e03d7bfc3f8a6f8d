"""Live updates: server-sent events that say what has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from cargobike.core.errors import CargobikeError
from cargobike.experiments.pages import answers
from cargobike.experiments.pages.api.inputs import REFUSALS
from cargobike.experiments.pages.describing import encoded, experiment_summary, row_of
from cargobike.experiments.pages.state import ServerState

_LOOK_EVERY_S: Final = 0.5
_LIST_EVERY_S: Final = 1.5
_KEEP_ALIVE_S: Final = 15.0
MOST_LISTENERS: Final = 64


def event_routes(state: ServerState) -> APIRouter:
    """Make the route of live updates."""
    routes = APIRouter(tags=["events"], responses=REFUSALS)
    listeners = [0]

    @routes.get(
        "/events",
        response_class=Response,
        responses={
            200: {"content": {"text/event-stream": {}}, "description": "Events `experiment` and `experiments`."},
            429: {"model": answers.Problem, "description": "Too many are listening."},
        },
    )
    async def events(
        experiment: Annotated[
            str | None, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$", max_length=80, description="Only this one.")
        ] = None,
        once: Annotated[bool, Query(description="End after the first event.")] = False,
    ) -> Response:
        """Tell what changes, from now on: of one experiment its summary, else which experiments there are."""
        if experiment is not None:
            await run_in_threadpool(state.live.get, experiment)
        if listeners[0] >= MOST_LISTENERS:
            return JSONResponse({"detail": f"{MOST_LISTENERS} are listening already; close some pages."}, 429)
        watching = _one(state, experiment) if experiment is not None else _all(state)

        async def stream() -> AsyncIterator[bytes]:
            listeners[0] += 1
            try:
                async for block in watching:
                    yield block
                    if once and block.startswith(b"event:"):
                        return
            finally:
                listeners[0] -= 1

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    return routes


async def _one(state: ServerState, experiment_id: str) -> AsyncIterator[bytes]:
    """Yield an event whenever an experiment has changed, and at the beginning."""

    def look(version: int) -> tuple[int, dict[str, Any]] | None:
        live = state.live.get(experiment_id)
        with live.reading() as record:
            if live.version == version:
                return None
            return live.version, {**experiment_summary(row_of(record)), "version": live.version}

    version, told_at = -1, time.monotonic()
    while not state.closing.is_set():
        try:
            news = await run_in_threadpool(look, version)
        except CargobikeError as error:
            yield _event("gone", {"detail": str(error)})
            return
        if news is not None:
            version, told_at = news[0], time.monotonic()
            yield _event("experiment", news[1])
        elif time.monotonic() - told_at > _KEEP_ALIVE_S:
            told_at = time.monotonic()
            yield b": still here\n\n"
        await asyncio.sleep(_LOOK_EVERY_S)


async def _all(state: ServerState) -> AsyncIterator[bytes]:
    """Yield an event with the ids of experiments that are new, changed or gone, and at the beginning."""

    def look() -> dict[str, Any]:
        return {row.id: (row.state.value, row.last_at, row.trials) for row in state.listing.experiments()}

    seen: dict[str, Any] | None = None
    told_at = time.monotonic()
    while not state.closing.is_set():
        try:
            found = await run_in_threadpool(look)
        except CargobikeError as error:
            yield _event("gone", {"detail": str(error)})
            return
        if found != seen:
            before = seen or {}
            changed = [one for one in {**found, **before} if found.get(one) != before.get(one)]
            seen, told_at = found, time.monotonic()
            yield _event("experiments", {"total": len(found), "changed": changed[:200]})
        elif time.monotonic() - told_at > _KEEP_ALIVE_S:
            told_at = time.monotonic()
            yield b": still here\n\n"
        await asyncio.sleep(_LIST_EVERY_S)


def _event(name: str, data: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encoded(data))
