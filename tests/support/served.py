"""A front and replicas without a supervisor: the test says what a supervisor would."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil

from cargobike.serving.specification import Limits, Specification
from cargobike.serving.supervising.listening import hold_port
from cargobike.serving.wire import (
    CONTROL,
    Drain,
    EndFront,
    Expect,
    Frames,
    FromFront,
    FrontConfig,
    ReplicaConfig,
    ReplicaGone,
    ReplicaReady,
    Route,
    Routes,
    Said,
    Supervise,
    framed,
)

WAIT_S = 30.0


class Deployment:
    """One front, its replicas, and the supervisor's end of the control socket.

    Args:
        model: One of `support.served_models.MODELS`.
        limits: What requests may take.
        tokens: As `FrontConfig` has them.
        more: What else the specification says.
    """

    def __init__(self, model: str, *, limits: Limits | None = None, tokens: Any = None, **more: Any) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="served-")
        self._secret = secrets.token_hex(8)
        self._front: subprocess.Popen[bytes] | None = None
        self._replicas: dict[int, subprocess.Popen[bytes]] = {}
        self._logs: list[psutil.Process] = []
        self._control: socket.socket | None = None
        self._frames = Frames()
        self.heard: list[FromFront] = []
        self.front_grace_s = float(more.pop("front_grace_s", 30.0))
        self.replica_grace_s = float(more.pop("replica_grace_s", 30.0))
        self.specification = Specification(name="shop", model=model, limits=limits or Limits(), **more)
        self.tokens = tokens or {}
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        scheme = "https" if self.specification.tls_certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.errors = Path(self._folder.name) / "errors.log"
        self._grpc_hold = None if self.specification.grpc_port is None else hold_port("127.0.0.1", 0)
        self.grpc_port = 0 if self._grpc_hold is None else self._grpc_hold.getsockname()[1]

    @property
    def folder(self) -> str:
        """Where the sockets are."""
        return self._folder.name

    def start_front(self) -> None:
        """Start the front, and connect to it as its supervisor."""
        config = FrontConfig(
            specification=msgspec.json.encode(self.specification),
            project=self._folder.name,
            folder=self._folder.name,
            listener=self.listener.fileno(),
            secret=self._secret,
            tokens=self.tokens,
            grace_s=self.front_grace_s,
            grpc_port=self.grpc_port,
        )
        self._front = self._start("cargobike.serving.front", config, pass_fds=[self.listener.fileno()])
        self.supervise()

    def supervise(self, *routes: Route, starting: int = 1) -> None:
        """Connect as a supervisor, and send all requests to version 1 or as said."""
        self._control = self._connect()
        self._frames = Frames()
        self.say(Supervise(self._secret))
        self.say(Routes(list(routes) or [Route(1)]))
        self.say(Expect(starting))

    def leave_alone(self) -> None:
        """Close the control socket, as a supervisor does that is killed."""
        assert self._control is not None
        self._control.close()
        self._control = None

    def start_replica(
        self, number: int = 1, version: int = 1, *, model: str = "", wait: bool = True, **env: str
    ) -> int:
        """Start a replica; return its process."""
        specification = self.specification
        if model:
            specification = msgspec.structs.replace(specification, model=model)
        config = ReplicaConfig(
            specification=msgspec.json.encode(specification),
            project=self._folder.name,
            folder=self._folder.name,
            replica=number,
            version=version,
            secret=self._secret,
            grace_s=self.replica_grace_s,
        )
        self._replicas[number] = self._start("support.served_models", config, env=env)
        if wait:
            self.wait_for(ReplicaReady, lambda said: said.replica == number)
        return self._replicas[number].pid

    def _start(self, module: str, config: Any, *, pass_fds: Any = (), env: Any = None) -> subprocess.Popen[bytes]:
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **(env or {})}
        with self.errors.open("ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", module], stdin=subprocess.PIPE, stderr=errors, pass_fds=pass_fds, env=variables
            )
        assert process.stdin is not None
        process.stdin.write(msgspec.msgpack.encode(config))
        process.stdin.close()
        return process

    def _connect(self) -> socket.socket:
        until = time.monotonic() + WAIT_S
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(str(Path(self._folder.name) / CONTROL))
            except OSError:
                connection.close()
                if time.monotonic() > until or (self._front is not None and self._front.poll() is not None):
                    raise TimeoutError(f"the front does not listen: {self.errors.read_text()}") from None
                time.sleep(0.01)
            else:
                return connection

    def say(self, message: Said) -> None:
        """Say something as the supervisor."""
        assert self._control is not None
        self._control.sendall(framed(message))

    def wait_for(self, kind: type[Any] | tuple[type[Any], ...], condition: Any = lambda said: True) -> Any:
        """Return the first message of a kind that fits, and drop those before it."""
        until = time.monotonic() + WAIT_S
        while True:
            while self.heard:
                message = self.heard.pop(0)
                if isinstance(message, kind) and condition(message):
                    return message
            assert self._control is not None
            self._control.settimeout(max(0.01, until - time.monotonic()))
            try:
                data = self._control.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            except TimeoutError:
                raise TimeoutError(f"no {kind} within {WAIT_S} s: {self.errors.read_text()}") from None
            if not data:
                raise ConnectionError(f"the front is gone: {self.errors.read_text()}")
            self.heard += [msgspec.msgpack.decode(body, type=FromFront) for body in self._frames.feed(data)]

    def says_stranger(self, name: str, data: bytes) -> bytes:
        """Send bytes to one of the sockets; return what comes back before the connection is closed."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(WAIT_S)
            connection.connect(str(Path(self._folder.name) / name))
            connection.sendall(data)
            try:
                return connection.recv(1 << 16)
            except ConnectionResetError:
                return b""

    def kill_front(self) -> None:
        """Kill the front, as a machine short of memory does."""
        assert self._front is not None
        self._end(self._front)
        self.leave_alone()

    def kill_replica(self, number: int) -> None:
        """Kill a replica and wait until the front has noticed."""
        self._replicas[number].kill()
        self._replicas[number].wait(WAIT_S)
        self.wait_for(ReplicaGone, lambda said: said.replica == number)

    def drain(self, number: int) -> None:
        """Ask that a replica gets no more batches."""
        self.say(Drain(number))

    def end_of_replica(self, number: int) -> int:
        """Wait until a replica has ended by itself; return its exit code."""
        return self._replicas[number].wait(WAIT_S)

    def end_of_front(self) -> int:
        """Wait until the front has ended by itself; return its exit code."""
        assert self._front is not None
        return self._front.wait(WAIT_S)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            self._logs += psutil.Process(process.pid).children()
        process.kill()
        process.wait(WAIT_S)

    def close(self) -> None:
        """End everything."""
        if self._control is not None:
            try:
                self.say(EndFront(within_s=1.0))
            except OSError:
                pass
            self._control.close()
        for process in [*self._replicas.values(), *([self._front] if self._front else [])]:
            self._end(process)
        psutil.wait_procs(self._logs, WAIT_S)  # they write what they were given before they end
        self.listener.close()
        if self._grpc_hold is not None:
            self._grpc_hold.close()
        self._folder.cleanup()


@contextmanager
def serving(model: str, *, replicas: int = 1, **options: Any) -> Iterator[Deployment]:
    """Serve a model for a `with` block."""
    deployment = Deployment(model, **options)
    try:
        deployment.start_front()
        for number in range(1, replicas + 1):
            deployment.start_replica(number, wait=False)
        for _ in range(replicas):
            deployment.wait_for(ReplicaReady)
        yield deployment
    finally:
        deployment.close()


def post(deployment: Deployment, path: str, body: Any, **options: Any) -> httpx.Response:
    """Send JSON, or bytes as they are."""
    content = body if isinstance(body, (bytes, str)) else msgspec.json.encode(body)
    return httpx.post(f"{deployment.url}{path}", content=content, timeout=WAIT_S, **options)
