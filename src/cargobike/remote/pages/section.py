"""The routes of commands that run where the project is, for callers on other machines."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import time
from typing import Annotated, Final

from fastapi import APIRouter, Body, Path, Query
from starlette.responses import Response

from cargobike.core.errors import ForbiddenError, InvalidInputError, NotFoundError
from cargobike.core.plain_files import open_plain
from cargobike.remote.answers import (
    CallOpened,
    CommandRule,
    CommandRules,
    CommandState,
    FileReceived,
)
from cargobike.remote.commands.desk import Desk
from cargobike.remote.commands.rules import MADE, declared
from cargobike.remote.pages import steering
from cargobike.remote.pages.calls import Caller, Commands, command_state, in_words
from cargobike.ui.web.answering import REFUSALS, answer, sends
from cargobike.ui.web.permissions import FAILING_CHANGES, needs
from cargobike.ui.web.roles import Role
from cargobike.ui.web.section import Section
from cargobike.ui.web.state import ServerState

_LONGEST_WAIT_S: Final = 20.0
_LOOK_S: Final = 0.03
_LONGEST_PART: Final = 8 << 20

Id = Annotated[str, Path(max_length=60, description="The call, as it was named when it was opened.")]
After = Annotated[int, Query(ge=0, le=2**53, description="How many frames were read; they are forgotten.")]
WaitS = Annotated[float, Query(ge=0, le=_LONGEST_WAIT_S, description="For how many seconds to wait for news.")]
Offset = Annotated[int, Query(ge=0, le=2**53, description="Where to begin.")]
InnerPath = Annotated[str, Query(min_length=1, max_length=4000, description="One of `files` of the command.")]

api = APIRouter(responses=REFUSALS)
commands = APIRouter(tags=["commands"], responses=REFUSALS)


@commands.get("/command-rules")
@sends
def all_commands() -> CommandRules:
    """Return which commands can be run for callers on other machines, and the role that each needs."""
    return CommandRules(
        [
            CommandRule(words, afar.role, list(afar.sends), list(afar.brings), afar.only_here)
            for words, afar in sorted(declared().items())
        ]
    )


@commands.post("/commands", status_code=202, response_model=CommandState, responses=FAILING_CHANGES)
@needs(Role.READ)  # each command has a role of its own
def start(
    desk: Commands,
    caller: Caller,
    *,
    arguments: Annotated[list[str], Body(max_length=1000, description='The command line: `["models", "ls"]`.')],
    call: Annotated[str, Body(max_length=60, description="The call that files were sent to; empty for none.")] = "",
    detached: Annotated[bool, Body(description="Go on also if its output is not read.")] = False,
    columns: Annotated[int, Body(ge=0, le=1000, description="How wide the caller's terminal is; 0 for none.")] = 0,
) -> Response:
    """Run a command of the command line where the project is; read its output with `GET /commands/ID`.

    The arguments are read by the command line's own parser and checked against what is declared for the command; there
    is no shell. Needs `Content-Type: application/json` and a header `X-Cargobike`; what does more than read needs a
    token, sent as `Authorization: Bearer`.
    """
    with in_words():
        opened = call or desk.prepare(caller).id
        return answer(
            command_state(desk, desk.start(opened, arguments, detached=detached, columns=columns), 0), status=202
        )


@commands.post("/commands/calls", status_code=201, response_model=CallOpened, responses=FAILING_CHANGES)
@needs(Role.READ)
def open_call(desk: Commands, caller: Caller) -> Response:
    """Open a call, to send files to before its command starts; needs the role `run`."""
    with in_words():
        if caller == "read":
            raise ForbiddenError("Sending files needs a token with the role 'run'.")
        return answer(CallOpened(desk.prepare(caller).id), status=201)


@commands.post("/commands/calls/{call}/files", response_model=FileReceived, responses=FAILING_CHANGES)
@needs(Role.READ)
def receive(
    desk: Commands,
    call: Id,
    *,
    path: Annotated[str, Body(min_length=1, max_length=4000, description="Where it lies, relative and plain.")],
    content: Annotated[str, Body(max_length=60_000, description="The next piece of it, in Base64.")],
    offset: Annotated[int, Body(ge=0, le=2**53, description="Where the piece begins.")] = 0,
) -> Response:
    """Write a piece of a file that a command is to have; pieces come in order."""
    with in_words():
        try:
            piece = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidInputError(f"The piece of {path!r} is not in Base64: {error}.") from error
        return answer(FileReceived(path, desk.receive(call, path, piece, offset)))


@commands.get("/commands/{call}", response_model=CommandState)
async def follow(desk: Commands, call: Id, after: After = 0, wait_s: WaitS = 0.0) -> Response:
    """Return what a command printed since the last question, at once or when there is something; and its end."""
    one = desk.find(call)
    if one.process is None:
        raise NotFoundError("The command of this call has not started.", wanted=call)
    give_up_at = time.monotonic() + wait_s
    while True:
        # Before the frames: what was printed last is there when the process has ended.
        has_ended = one.process.has_ended
        frames, _ = one.process.frames(after)
        if frames or has_ended or time.monotonic() >= give_up_at:
            return answer(command_state(desk, one, after))
        await asyncio.sleep(_LOOK_S)


@commands.post("/commands/{call}/cancel", status_code=202, response_model=CommandState, responses=FAILING_CHANGES)
@needs(Role.READ)
def cancel(desk: Commands, call: Id) -> Response:
    """Interrupt a command, as Ctrl-C would; its state shows when it has ended."""
    one = desk.find(call)
    if one.process is None:
        raise NotFoundError("The command of this call has not started.", wanted=call)
    one.process.cancel()
    return answer(command_state(desk, one, 0), status=202)


@commands.get(
    "/commands/{call}/file",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def read_file(desk: Commands, call: Id, path: InnerPath, offset: Offset = 0) -> Response:
    """Return a part of a file that a command wrote for its caller: at most 8 MiB."""
    if path not in dict(desk.made(call)):
        raise NotFoundError(f"The command wrote no file {path!r}.", wanted=path)
    with open_plain(desk.find(call).folder / MADE / path) as file:
        file.seek(offset, os.SEEK_SET)
        part = file.read(_LONGEST_PART)
    return Response(part, media_type="application/octet-stream")


api.include_router(steering.api)
api.include_router(commands)


def remote_section(server: ServerState) -> Section:
    """Make the section of commands of one server."""
    desk = Desk(server.project)
    return Section(
        name="remote",
        holds="commands for callers on other machines",
        api=api,
        package="cargobike.remote.pages",
        state=desk,
        close=desk.close,
    )
