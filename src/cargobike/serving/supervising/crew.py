"""The processes of a deployment, as its supervisor holds them: a front, and hosts with replicas below them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.package import PACKAGE_PARENT
from cargobike.serving.record import DeploymentFolder
from cargobike.serving.specification import Specification
from cargobike.serving.supervising.config import Local
from cargobike.serving.supervising.hosting import SOCKET, SOCKETS, End, EndHost, Fork, FromHost, HostConfig, HostIs
from cargobike.serving.supervising.links import Link, Process, connect, peer_pid
from cargobike.serving.wire import (
    CONTROL,
    EndFront,
    FromFront,
    FrontConfig,
    FrontIs,
    ReplicaConfig,
    Said,
    Supervise,
)

_COME_S: Final = 60.0
"""How long a front or a host may take to come up: the libraries of a model are imported meanwhile."""
_SILENT_S: Final = 30.0
"""A front or a host that has said nothing for so long, where it should speak every second, hangs."""
_END_S: Final = 5.0
_HOST_LINGERS_S: Final = 5.0
"""How much longer than the front a host waits for a supervisor, so that the front can answer what it has."""


@dataclass
class Host:
    """A host of replicas."""

    number: int
    libraries: tuple[str, ...]
    process: Process
    link: Link[FromHost] | None = None
    replicas: dict[int, int] = field(default_factory=dict)
    waiting: list[Said] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)


@dataclass
class Front:
    """The process that answers requests."""

    process: Process
    link: Link[FromFront] | None = None
    is_up: bool = False
    since: float = field(default_factory=time.monotonic)


class Crew:
    """Starts, finds, reaches and ends the processes of a deployment. Decides nothing.

    Args:
        runtime: The folder of their sockets.
        folder: The deployment's folder in the project.
        secret: What they know each other by.
        grace_s: How long they go on without a supervisor.
    """

    def __init__(self, runtime: Path, folder: DeploymentFolder, secret: str, grace_s: float) -> None:
        self.runtime = runtime
        self.folder = folder
        self.secret = secret
        self.grace_s = grace_s
        self.specification = Specification(name="", model="")
        self.local = Local()
        self.listener: socket.socket | None = None
        self.bind: Callable[[], socket.socket] | None = None
        self.grpc_port = 0
        self.grpc_hold: socket.socket | None = None
        self.front: Front | None = None
        self.hosts: list[Host] = []
        self._number = 0

    # --- finding what an earlier supervisor has left ------------------------------------------------------------------

    def adopt(self) -> dict[int, int]:
        """Connect to hosts and a front that run already; returns the versions of their replicas by number."""
        found: dict[int, int] = {}
        for path in sorted(self.runtime.glob(SOCKETS)):
            number = int(path.name.split("-")[1].split(".")[0])
            self._number = max(self._number, number)
            host = self._adopt_host(path, number)
            if host is None:
                path.unlink(missing_ok=True)
            else:
                self.hosts.append(host)
                found.update(host.replicas)
        self._adopt_front()
        return found

    def _adopt_host(self, path: Path, number: int) -> Host | None:
        connection = connect(path)
        if connection is None:
            return None
        try:
            process = Process(peer_pid(connection))
        except OSError:
            connection.close()
            return None
        link: Link[FromHost] = Link(connection, FromHost)
        greeting = link.hear()
        if not greeting or not isinstance(greeting[0], HostIs):
            process.kill()
            link.close()
            return None
        if link.descriptors:
            fd = link.descriptors.pop(0)
            if self.listener is None:
                self.listener = socket.socket(fileno=fd)
            else:
                os.close(fd)
        return Host(number, greeting[0].libraries, process, link, dict(greeting[0].replicas))

    def _adopt_front(self) -> None:
        connection = connect(self.runtime / CONTROL)
        if connection is None:
            return
        try:
            self.front = Front(Process(peer_pid(connection)), Link(connection, FromFront))
        except OSError:
            connection.close()
            return
        assert self.front.link is not None
        self.front.link.say(Supervise(self.secret))

    # --- the front ----------------------------------------------------------------------------------------------------

    def start_front(self) -> None:
        """Start a front on the listening socket; one that was adopted is kept."""
        if self.front is not None:
            return
        if self.listener is None:
            assert self.bind is not None
            self.listener = self.bind()
        (self.runtime / CONTROL).unlink(missing_ok=True)
        config = FrontConfig(
            specification=msgspec.json.encode(self.specification),
            project=str(self.folder.project.root),
            folder=str(self.runtime),
            listener=self.listener.fileno(),
            secret=self.secret,
            tokens=dict(self.local.tokens),
            grace_s=self.grace_s,
            grpc_port=self.grpc_port,
        )
        self.front = Front(self._spawn("cargobike.serving.front.__main__", config, "front.log"))

    def tell_front(self, message: Said) -> None:
        """Say something to the front, if there is one that listens."""
        if self.front is not None and self.front.link is not None:
            self.front.link.say(message)

    def end_front(self, within_s: float, *, kill: bool) -> None:
        """Have the front answer what it has, and end; or end it at once."""
        if self.front is None:
            return
        if kill or self.front.link is None or not self.front.link.say(EndFront(within_s)):
            self.front.process.kill()

    # --- replicas -----------------------------------------------------------------------------------------------------

    def start_replica(self, replica: int, version: int, libraries: tuple[str, ...]) -> None:
        """Fork a replica from a host that has imported what it needs; such a host is started if there is none."""
        config = ReplicaConfig(
            specification=msgspec.json.encode(self.specification),
            project=str(self.folder.project.root),
            folder=str(self.runtime),
            replica=replica,
            version=version,
            secret=self.secret,
            grace_s=self.grace_s,
        )
        host = next((each for each in reversed(self.hosts) if set(libraries) <= set(each.libraries)), None)
        host = host or self._start_host(libraries)
        host.replicas[replica] = version
        order = Fork(replica, msgspec.msgpack.encode(config))
        if host.link is None:
            host.waiting.append(order)
        else:
            host.link.say(order)

    def end_replica(self, replica: int, *, kill: bool) -> None:
        """End a replica."""
        for host in self.hosts:
            if replica in host.replicas:
                if host.link is None:
                    host.waiting.append(End(replica, kill))
                else:
                    host.link.say(End(replica, kill))

    def _start_host(self, libraries: tuple[str, ...]) -> Host:
        self._number += 1
        config = HostConfig(
            socket=str(self.runtime / SOCKET.format(self._number)),
            logs=str(self.folder.logs),
            libraries=libraries,
            environment=dict(self.local.environment),
            paths=self.local.paths,
            listener=-1 if self.listener is None else self.listener.fileno(),
            grace_s=self.grace_s + _HOST_LINGERS_S,
        )
        process = self._spawn("cargobike.serving.supervising.host", config, f"host-{self._number}.log")
        host = Host(self._number, libraries, process)
        self.hosts.append(host)
        return host

    # --- watching -----------------------------------------------------------------------------------------------------

    def connect_new(self) -> bool:
        """Connect to processes that have come up; returns whether some have not yet."""
        now = time.monotonic()
        front = self.front
        if front is not None and front.link is None:
            connection = connect(self.runtime / CONTROL) if (self.runtime / CONTROL).exists() else None
            if connection is not None:
                front.link = Link(connection, FromFront)
                front.link.say(Supervise(self.secret))
            elif now - front.since > _COME_S:
                front.process.kill()
        for host in self.hosts:
            if host.link is None:
                connection = connect(self.runtime / SOCKET.format(host.number))
                if connection is not None:
                    host.link = Link(connection, FromHost)
                    for order in host.waiting:
                        host.link.say(order)
                    host.waiting.clear()
                elif now - host.since > _COME_S:
                    host.process.kill()
        return any(each is not None and each.link is None for each in (front, *self.hosts))

    def end_silent(self) -> None:
        """Kill what hangs, and hosts that no replica needs; the newest one stays, for it keeps the socket."""
        now = time.monotonic()
        front = self.front
        if front is not None and front.link is not None and now - front.link.heard_at > _SILENT_S:
            front.process.kill()
        for host in list(self.hosts):
            if host.link is None:
                continue
            if host.replicas and now - host.link.heard_at > _SILENT_S:
                host.process.kill()
            elif not host.replicas and host is not self.hosts[-1]:
                host.link.say(EndHost())

    def processes(self) -> Iterator[Process]:
        """Yield front and hosts."""
        if self.front is not None:
            yield self.front.process
        for host in self.hosts:
            yield host.process

    def heard_front_is(self, message: FrontIs) -> None:
        """Note that the front is up."""
        if self.front is not None:
            self.front.is_up = True

    def front_ended(self) -> str:
        """Forget a front that has ended; returns how it did."""
        assert self.front is not None
        front, self.front = self.front, None
        how = self._how(front.process, "" if front.is_up else "front.log")
        if front.link is not None:
            front.link.close()
        front.process.close()
        return how

    def host_ended(self, host: Host) -> str:
        """Forget a host that has ended; returns how it did."""
        self.hosts.remove(host)
        how = self._how(host.process, "" if host.link is not None else f"host-{host.number}.log")
        if host.link is not None:
            host.link.close()
        host.process.close()
        return how

    def close(self) -> None:
        """End everything, and wait for it."""
        if self.front is not None:
            self.front.process.kill()
        for host in self.hosts:
            if host.link is None or not host.link.say(EndHost()):
                host.process.kill()
        for process in list(self.processes()):
            if not process.wait(_END_S):
                process.kill()
                process.wait(1.0)
            process.close()
        for one in (self.front, *self.hosts):
            if one is not None and one.link is not None:
                one.link.close()
        for one_socket in (self.listener, self.grpc_hold):
            if one_socket is not None:
                one_socket.close()

    def _how(self, process: Process, log: str) -> str:
        how = process.ending()
        with contextlib.suppress(OSError, IndexError):
            if log:
                how += ": " + (self.folder.logs / log).read_text(errors="replace").strip().splitlines()[-1]
        return how

    def _spawn(self, module: str, config: msgspec.Struct, log: str) -> Process:
        program = f"import sys; sys.path.append({PACKAGE_PARENT!r}); from {module} import main; main()"
        self.folder.logs.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.folder.logs / log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            popen = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.PIPE,
                stdout=fd,
                stderr=fd,
                pass_fds=() if self.listener is None else (self.listener.fileno(),),
                start_new_session=True,
            )
        finally:
            os.close(fd)
        assert popen.stdin is not None
        with contextlib.suppress(BrokenPipeError), popen.stdin as pipe:
            pipe.write(msgspec.msgpack.encode(config))
        return Process(popen.pid, popen)
