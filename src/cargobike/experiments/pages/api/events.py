"""Live updates: server-sent events that say what has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from cargobike.core.errors import CargobikeError
from cargobike.experiments.pages.answers import ExperimentEvent, ListEvent
from cargobike.experiments.pages.api.inputs import ID_PATTERN
from cargobike.experiments.pages.describing import experiment_summary
from cargobike.experiments.pages.state import ExperimentPages, State
from cargobike.ui.answers import Answer, Problem
from cargobike.ui.web.answering import REFUSALS, encoded

_LOOK_EVERY_S: Final = 0.5
_LIST_EVERY_S: Final = 1.5
_KEEP_ALIVE_S: Final = 15.0
MOST_LISTENERS: Final = 64


routes = APIRouter(tags=["events"], responses=REFUSALS)


@routes.get(
    "/events",
    response_class=Response,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events `experiment` and `experiments`."},
        429: {"model": Problem, "description": "Too many pages are listening."},
    },
)
async def events(
    state: State,
    experiment: Annotated[str | None, Query(pattern=ID_PATTERN, max_length=80, description="Only this one.")] = None,
    once: Annotated[bool, Query(description="End after the first event.")] = False,
) -> Response:
    """Send an event at each change: the summary of one experiment, or else the ids of experiments that changed."""
    if experiment is not None:
        await run_in_threadpool(state.live.get, experiment)
    if state.listeners >= MOST_LISTENERS:
        raise HTTPException(429, f"{MOST_LISTENERS} pages are listening already; close some.")
    blocks = _one(state, experiment) if experiment is not None else _all(state)
    return StreamingResponse(
        _counted(state, blocks, once=once), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _counted(state: ExperimentPages, blocks: AsyncIterator[bytes], *, once: bool) -> AsyncIterator[bytes]:
    """Pass blocks on, up to the first event if only `once`, and count the listener meanwhile."""
    state.listeners += 1
    try:
        async for block in blocks:
            yield block
            if once and block.startswith(b"event:"):
                return
    finally:
        state.listeners -= 1


async def _one(state: ExperimentPages, experiment_id: str) -> AsyncIterator[bytes]:
    """Yield an event whenever an experiment has changed, and at the beginning."""

    def look(version: int) -> ExperimentEvent | None:
        live = state.live.get(experiment_id)
        with live.reading() as record:
            if live.version == version:
                return None
            return ExperimentEvent(**msgspec.structs.asdict(experiment_summary(live, record)), version=live.version)

    version, told_at = -1, time.monotonic()
    while not state.server.closing.is_set():
        try:
            news = await run_in_threadpool(look, version)
        except CargobikeError as error:
            yield _event("gone", Problem(detail=str(error)))
            return
        if news is not None:
            version, told_at = news.version, time.monotonic()
            yield _event("experiment", news)
        elif time.monotonic() - told_at > _KEEP_ALIVE_S:
            told_at = time.monotonic()
            yield b": still here\n\n"
        await asyncio.sleep(_LOOK_EVERY_S)


async def _all(state: ExperimentPages) -> AsyncIterator[bytes]:
    """Yield an event with the ids of experiments that are new, changed or gone, and at the beginning."""

    def look() -> dict[str, Any]:
        return {row.id: (row.state.value, row.last_at, row.trials) for row in state.listing.experiments()}

    seen: dict[str, Any] | None = None
    told_at = time.monotonic()
    while not state.server.closing.is_set():
        try:
            now = await run_in_threadpool(look)
        except CargobikeError as error:
            yield _event("gone", Problem(detail=str(error)))
            return
        if now != seen:
            before = seen or {}
            changed = [one for one in {**now, **before} if now.get(one) != before.get(one)]
            seen, told_at = now, time.monotonic()
            yield _event("experiments", ListEvent(total=len(now), changed=changed[:200]))
        elif time.monotonic() - told_at > _KEEP_ALIVE_S:
            told_at = time.monotonic()
            yield b": still here\n\n"
        await asyncio.sleep(_LIST_EVERY_S)


def _event(name: str, answer: Answer) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encoded(answer))
