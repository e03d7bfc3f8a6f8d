"""The process of a front: `python -m cargobike.serving.front`, started with a `FrontConfig` on standard input."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn
import uvloop

from cargobike.serving.front.app import App
from cargobike.serving.front.hub import Hub
from cargobike.serving.front.keeping import open_log
from cargobike.serving.front.links import ReplicaLink, SupervisorLink
from cargobike.serving.front.web.access import Access
from cargobike.serving.front.web.connections import Connection, part, sweep
from cargobike.serving.specification import Specification
from cargobike.serving.wire import CONTROL, REPLICAS, FrontConfig

BACKLOG: Final = 2048
SWEEP_S: Final = 1.0

_log: Final = logging.getLogger(__name__)


def main() -> None:
    """Run a front until it is told to end, or has had no supervisor for too long."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    config = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=FrontConfig)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor drains first
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_front(config))


class _Server(uvicorn.Server):
    """uvicorn without its own handlers of signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us."""
        yield


async def run_front(config: FrontConfig) -> None:
    """Serve until told to end."""
    specification = msgspec.json.decode(config.specification, type=Specification)
    listener = socket.socket(fileno=config.listener)
    listener.setblocking(False)
    server: _Server | None = None
    calls: Any = None
    ending: list[asyncio.Task[None]] = []

    def end(within_s: float) -> None:
        assert server is not None
        leave_s = specification.limits.leave_s
        if leave_s > 0 and not hub.is_leaving:
            hub.is_leaving = True
            part(server.server_state.connections)
            asyncio.get_running_loop().call_later(leave_s, end, max(1.0, within_s - leave_s))
            return
        if calls is not None and not ending:
            ending.append(asyncio.create_task(calls.stop(within_s)))
        server.config.timeout_graceful_shutdown = max(1, round(within_s))
        server.should_exit = True

    hub = Hub(config, specification, _port_of(listener), end)
    log = await open_log(specification, config.project, hub.model, hub.signatures)
    app = App(hub, Access(config.tokens, specification.host), log)
    server = _Server(_settings(app, specification))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end, specification.limits.deadline_s)
    sockets = [await _listen(config.folder, CONTROL, lambda: SupervisorLink(hub))]
    sockets.append(await _listen(config.folder, REPLICAS, lambda: ReplicaLink(hub)))
    if config.grpc_port:
        from cargobike.serving.front.rpc.server import start_server  # noqa: PLC0415 - an extra

        calls = await start_server(app, specification, config.grpc_port)
    gc.set_threshold(100_000, 20, 100)
    gc.freeze()  # what is loaded by now stays, and need not be looked at again
    tasks = [asyncio.create_task(hub.watch()), asyncio.create_task(_sweep(server))]
    try:
        await server.serve(sockets=[listener])
        await asyncio.gather(*ending)
    finally:
        if calls is not None:
            await calls.stop(None)
        for task in tasks:
            task.cancel()
        if hub.is_orphan:
            hub.dismiss()
        for unix_server in sockets:
            unix_server.close()
        if log is not None:
            await log.close()
        await asyncio.sleep(0)


def _port_of(listener: socket.socket) -> int:
    name = listener.getsockname()
    return int(name[1]) if isinstance(name, tuple) else 0


def _settings(app: App, specification: Specification) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        ssl_certfile=specification.tls_certificate or None,
        ssl_keyfile=specification.tls_key or None,
    )


async def _listen(folder: str, name: str, protocol: Any) -> asyncio.Server:
    """Listen on a socket in the folder; one of a front that is gone is replaced."""
    path = Path(folder) / name
    path.unlink(missing_ok=True)
    server = await asyncio.get_running_loop().create_unix_server(protocol, str(path), backlog=256)
    path.chmod(0o600)
    return server


async def _sweep(server: uvicorn.Server) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(SWEEP_S)
        sweep(server.server_state.connections, loop.time())
