"""Routes with typed bodies for what starts processes: deployments, monitors, schedules, publications.

Each is a command of the command line, written from what was asked for and run as commands from afar are: in a process
of its own, with the role that is declared for it. The answer names the command; `GET /commands/ID` follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Body, HTTPException, Path
from starlette.responses import Response

from cargobike.core.errors import NotFoundError
from cargobike.pipelines.facts import RunStarted
from cargobike.pipelines.record import list_runs
from cargobike.remote.answers import CommandState
from cargobike.remote.commands.desk import Desk
from cargobike.remote.pages.calls import Caller, Commands, command_state, in_words
from cargobike.ui.web.answering import REFUSALS, answer
from cargobike.ui.web.permissions import FAILING_CHANGES, needs
from cargobike.ui.web.roles import Role
from cargobike.ui.web.start import Server

Port = Annotated[int, Body(ge=0, le=65535, description="The port; 0 for any that is free.")]
Name = Annotated[str, Path(max_length=100, description="Its name.")]

api = APIRouter(responses=REFUSALS)


@api.post("/deployments", status_code=202, response_model=CommandState, responses=FAILING_CHANGES, tags=["deployments"])
@needs(Role.RUN)
def deploy(
    desk: Commands,
    caller: Caller,
    *,
    model: Annotated[str, Body(max_length=200, description="`digits@champion`, `digits:3`, or `digits`.")],
    name: Annotated[str, Body(max_length=100, description="The deployment's name; by default the model's.")] = "",
    host: Annotated[str, Body(max_length=100, description="The address of the server's machine to listen on.")] = "",
    port: Port = 0,
    least: Annotated[int, Body(ge=0, le=10_000, description="The fewest replicas.")] = 1,
    most: Annotated[int, Body(ge=0, le=10_000, description="The most replicas; 0 for as many as the fewest.")] = 0,
    view: Annotated[str, Body(max_length=200, description="A feature view that requests are looked up in.")] = "",
    deadline_s: Annotated[float | None, Body(gt=0, le=86_400, description="How long a request may take.")] = None,
    log: Annotated[float | None, Body(ge=0, le=1, description="The share of requests that is kept.")] = None,
    trust: Annotated[bool, Body(description="Run code of a model that was brought in.")] = False,
) -> Response:
    """Serve a model in the background, as `cargobike serve --detach` does; read its end with `GET /commands/ID`.

    Needs a token, sent as `Authorization: Bearer`, `Content-Type: application/json` and a header `X-Cargobike`.
    """
    line = ["serve", "--detach", "--json", f"--replicas={least}:{max(least, most)}", f"--port={port}"]
    line += _options(name=name, host=host, view=view, deadline=deadline_s, log=log)
    return _started(desk, caller, [*line, *(["--trust"] if trust else []), "--", model])


@api.post(
    "/deployments/{name}/start",
    status_code=202,
    response_model=CommandState,
    responses=FAILING_CHANGES,
    tags=["deployments"],
)
@needs(Role.RUN)
def start_again(desk: Commands, caller: Caller, name: Name) -> Response:
    """Start a deployment again that was stopped or lost, as `cargobike deployments start` does.

    Needs a token, sent as `Authorization: Bearer`, `Content-Type: application/json` and a header `X-Cargobike`.
    """
    return _started(desk, caller, ["deployments", "start", "--json", "--", name])


@api.post("/monitors", status_code=202, response_model=CommandState, responses=FAILING_CHANGES, tags=["monitors"])
@needs(Role.RUN)
def watch(
    desk: Commands,
    caller: Caller,
    *,
    name: Annotated[str, Body(max_length=100, description="A deployment to watch, or a monitor that was stopped.")],
    reference: Annotated[str, Body(max_length=200, description="What is usual: a table or a training dataset.")] = "",
    window: Annotated[str, Body(max_length=40, description="How many rows, or how long: `1000`, `1h`.")] = "",
    alarm: Annotated[str, Body(max_length=40, description="How many unusual windows of how many: `3 of 5`.")] = "",
) -> Response:
    """Watch a deployment, or go on with a monitor, as `cargobike monitor start` does.

    Needs a token, sent as `Authorization: Bearer`, `Content-Type: application/json` and a header `X-Cargobike`.
    """
    options = _options(reference=reference, window=window, alarm=alarm)
    return _started(desk, caller, ["monitor", "start", "--json", *options, "--", name])


@api.post(
    "/monitors/{name}/stop", status_code=202, response_model=CommandState, responses=FAILING_CHANGES, tags=["monitors"]
)
@needs(Role.RUN)
def stop_watching(desk: Commands, caller: Caller, name: Name) -> Response:
    """End the watcher of a monitor, as `cargobike monitor stop` does; it can be started again.

    Needs a token, sent as `Authorization: Bearer`, `Content-Type: application/json` and a header `X-Cargobike`.
    """
    return _started(desk, caller, ["monitor", "stop", "--json", "--", name])


@api.post(
    "/pipelines/schedules", status_code=202, response_model=CommandState, responses=FAILING_CHANGES, tags=["pipelines"]
)
@needs(Role.RUN)
def schedule(
    state: Server,
    desk: Commands,
    caller: Caller,
    *,
    pipeline: Annotated[str, Body(max_length=200, description="A pipeline that has run in the project.")],
    name: Annotated[str, Body(max_length=150, description="What to call it; by default the pipeline's name.")] = "",
    every: Annotated[str, Body(max_length=40, description="From one run to the next: `1d`.")] = "",
    cron: Annotated[str, Body(max_length=100, description="`0 3 * * *`, instead of that.")] = "",
    when: Annotated[
        Sequence[str], Body(max_length=20, description="`changed:GROUP`, `arrived:PLACE` or `drifted:DEPLOYMENT`.")
    ] = (),
    overlap: Annotated[str, Body(max_length=20, description="`skip`, `queue` or `cancel`.")] = "",
    catch_up: Annotated[str, Body(max_length=20, description="`none`, `last` or `all`.")] = "",
    timezone: Annotated[str, Body(max_length=60, description="The zone whose clocks `cron` means.")] = "",
    arguments: Annotated[dict[str, Any] | None, Body(description="What the pipeline is called with.")] = None,
) -> Response:
    """Run a pipeline again and again, as `cargobike pipelines schedule` does; a scheduler sets it off.

    Its function is the one that the newest run was begun with, on the machine of this server. A pipeline that never ran
    here is sent with the command: `cargobike --server … pipelines schedule file.py:function`. Needs a token, sent as
    `Authorization: Bearer`, `Content-Type: application/json` and a header `X-Cargobike`.
    """
    newest = _newest(state, pipeline)
    options = _options(name=name, every=every, cron=cron, overlap=overlap, catch_up=catch_up, timezone=timezone)
    options += [f"--when={text}" for text in when]
    options += [f"--set={key}={msgspec.json.encode(value).decode()}" for key, value in (arguments or {}).items()]
    line = ["pipelines", "schedule", "--json", *options, "--", newest.function]
    return _started(desk, caller, line, known=("function",))


@api.post(
    "/sharing/{network}/publications",
    status_code=202,
    response_model=CommandState,
    responses=FAILING_CHANGES,
    tags=["sharing"],
)
@needs(Role.RUN)
def publish(
    desk: Commands,
    caller: Caller,
    network: Annotated[str, Path(max_length=100, description="The network.")],
    *,
    name: Annotated[str, Body(max_length=100, description="What others call it.")],
    source: Annotated[
        str, Body(max_length=200, description="`table:NAME`, `dataset:NAME:VERSION` or `model:NAME:VERSION`.")
    ],
    description: Annotated[str, Body(max_length=20_000, description="A sentence or more.")] = "",
    license: Annotated[str, Body(max_length=200, description="What others may do with it: `CC-BY-4.0`.")] = "",
    tags: Annotated[Sequence[str], Body(max_length=100, description="Tags.")] = (),
    sample_rows: Annotated[int | None, Body(ge=0, le=20, description="Rows that others may look at.")] = None,
    redact: Annotated[Sequence[str], Body(max_length=1000, description="Columns left out of these rows.")] = (),
) -> Response:
    """Publish something of the project, as `cargobike share publish --yes` does: it becomes visible in the network.

    Needs a token, sent as `Authorization: Bearer`, `Content-Type: application/json` and a header `X-Cargobike`.
    """
    kind, _, what = source.partition(":")
    if kind not in {"table", "dataset", "model"} or not what:
        raise HTTPException(422, f"{source!r} is nothing of the project; give table:NAME, dataset:NAME or model:NAME.")
    options = _options(network=network, description=description, license=license, sample_rows=sample_rows)
    options += [f"--tag={tag}" for tag in tags] + [f"--redact={column}" for column in redact]
    return _started(desk, caller, ["share", "publish", "--yes", "--json", *options, "--", name, source])


def _options(**given: str | float | None) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value not in ("", None)]


def _newest(state: Server, pipeline: str) -> RunStarted:
    for record in list_runs(state.project, pipeline):
        if record.started.function:
            return record.started
    raise NotFoundError(f"No pipeline {pipeline!r} that is in a file has run in this project.", wanted=pipeline)


def _started(desk: Desk, caller: Any, arguments: Sequence[str], known: Collection[str] = ()) -> Response:
    with in_words():
        # It goes on if its output is not read: what it starts was asked for.
        call = desk.start(desk.prepare(caller).id, arguments, detached=True, known=known)
        return answer(command_state(desk, call, 0), status=202)
