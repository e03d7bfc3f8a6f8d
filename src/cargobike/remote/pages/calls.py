"""What routes of commands share: the desk, what a caller may have done, and the state of a command in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from cargobike.core.errors import ForbiddenError, ServerRefusedError
from cargobike.core.registering.afar import RoleName
from cargobike.remote.answers import CommandState, FileMade, FrameAnswer
from cargobike.remote.commands.desk import Call, Desk
from cargobike.ui.web.permissions import role_in
from cargobike.ui.web.start import Server


async def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.sections["remote"]
    return desk


async def _caller(request: Request, state: Server) -> RoleName:
    """Return what a caller may have done: without a token of its own, nothing but reading.

    A cookie does not count, so that no page in a browser can run anything; nor does being on the same machine, where
    other users are, too: what a command runs is code.
    """
    scheme, _, _ = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not state.access.has_tokens:
        return "read"
    return role_in(request.scope).value


Commands = Annotated[Desk, Depends(_desk)]
Caller = Annotated[RoleName, Depends(_caller)]


def command_state(desk: Desk, call: Call, after: int) -> CommandState:
    """Return how a command is doing, and what it printed after a number of frames."""
    assert call.process is not None
    code = call.process.exit_code
    frames, number = call.process.frames(after)
    return CommandState(
        id=call.id,
        frames=[FrameAnswer(frame.stream, frame.text) for frame in frames],
        next=number,
        exit_code=code,
        is_cancelled=call.process.is_cancelled,
        files=[FileMade(path, size) for path, size in desk.made(call.id)] if code is not None else [],
    )


@contextmanager
def in_words() -> Iterator[None]:
    """Turn refusals into answers: 403 and 409."""
    try:
        yield
    except ForbiddenError as error:
        raise HTTPException(403, str(error)) from error
    except ServerRefusedError as error:
        raise HTTPException(409, str(error)) from error
