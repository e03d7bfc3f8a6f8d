"""The host: one process per machine and driver that has imported the program's libraries and forks agents.

Because agents, templates and runners descend from it by fork, they share its memory: eight workers with PyTorch cost
one import and one copy. It has a single thread and runs no user code.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import mmap
import os
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cargobike.core.running.ending import process_ending
from cargobike.core.running.forks import fork
from cargobike.core.running.hosting import Begin, Fork, Forked, Gone, HostNews, HostOrder, Warm, decode_order
from cargobike.core.running.inherited import DRIVER_FD
from cargobike.core.settings import PROJECT
from cargobike.workers.agent_loop import AgentLoop, Below, run_agent
from cargobike.workers.processes import (
    DEFAULT,
    IGNORED,
    adopt_orphans,
    await_ends,
    end_descendants,
    set_handler,
    volunteer,
)
from cargobike.workers.program import MakeProgram, Program, Seat
from cargobike.workers.rehearsal import rehearse
from cargobike.workers.runner import open_stream, settle
from cargobike.workers.template_ends import TemplateBelow, TemplateEnd, TemplateHere
from cargobike.workers.template_loop import serve
from cargobike.workers.whereabouts import host_of
from cargobike.workers.wire.pairs import PairConnection
from cargobike.workers.wire.ways import AgentConfig

if TYPE_CHECKING:
    from cargobike.workers.files.courier import Courier

_encode = msgspec.msgpack.encode

_PIECE = 1 << 20
_MANY = 8
"""From so many workers on, a rehearsal costs less than it saves them together."""
_FAREWELL_S = 1.0
"""For agents to end what is below them, when the driver is gone."""


class Host:
    """The state of one host.

    Args:
        control: The connection to the engine.
        make: Makes the program that the workers run, from its payload.
    """

    def __init__(self, control: socket.socket, make: MakeProgram) -> None:
        self._control = control
        self._agents: dict[int, str] = {}
        self._wake_fd, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        set_handler(signal.SIGCHLD, lambda *_: None)
        order, descriptors = self._first_order()
        if not isinstance(order, Begin):
            raise SystemExit  # the engine was closed before it sent any work, or its process has ended
        self._version = order.version
        for name, value in order.environment.items():
            os.environ.setdefault(name, value)
        payload_fd, liveness_fd = descriptors
        self._liveness_fds = (liveness_fd, DRIVER_FD)
        self._program = make(_read_all(payload_fd))
        self._workers = order.workers

    def serve(self) -> None:
        """Fork agents on demand until the driver is gone."""
        adopt_orphans()
        self._warm_up()
        poller = select.poll()
        for fd in (self._control.fileno(), self._wake_fd, *self._liveness_fds):
            poller.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poller.poll()}
            if not ready.isdisjoint(self._liveness_fds):
                return
            if self._wake_fd in ready:
                os.read(self._wake_fd, 4096)
                self._reap()
            if self._control.fileno() in ready:
                order, descriptors = self._receive()
                if order is None:
                    return
                if isinstance(order, Fork):
                    self._fork(order, *descriptors)

    def see_agents_off(self) -> None:
        """Leave the processes of each trial to its agent, which has also noticed that the driver is gone.

        Should this process be killed meanwhile, all trials still come to their end. If it killed the agents first,
        what is below them would be left.
        """
        await_ends(self._agents, _FAREWELL_S)

    def _first_order(self) -> tuple[HostOrder | None, list[int]]:
        poller = select.poll()
        for fd in (self._control.fileno(), DRIVER_FD):
            poller.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poller.poll()}
        return self._receive() if DRIVER_FD not in ready else (None, [])

    def _receive(self) -> tuple[HostOrder | None, list[int]]:
        data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 4)
        for fd in descriptors:
            os.set_inheritable(fd, False)
        return (decode_order(data) if data else None), descriptors

    def _send(self, news: HostNews) -> None:
        with contextlib.suppress(OSError):
            self._control.send(_encode(news))

    def _warm_up(self) -> None:
        self._program.prepare()
        if self._workers >= _MANY:
            self._rehearse()
        failed: dict[str, str] = {}
        for name in self._program.preload:
            try:
                importlib.import_module(name)
            except Exception as error:  # noqa: BLE001 - the program reports a broken library
                failed[name] = f"{type(error).__name__}: {error}"
        # A collection in a child would touch, and so copy, every page that it shares with us.
        gc.freeze()
        gc.enable()
        self._send(Warm(failed))

    def _rehearse(self) -> None:
        try:
            rehearse(self._program.understudy())
        except Exception:  # noqa: BLE001 - workers do without, and take more memory
            traceback.print_exc()

    def _fork(self, order: Fork, config_fd: int, wire_fd: int = -1) -> None:
        pid = fork()
        if pid == 0:
            status = 1
            try:
                self._control.close()
                os.close(signal.set_wakeup_fd(-1))
                os.close(self._wake_fd)
                set_handler(signal.SIGCHLD, DEFAULT)
                become_agent(self._program, (config_fd, wire_fd), order.gpus, self._liveness_fds, self._version)
                status = 0
            except BaseException:  # noqa: BLE001 - no exception may leave a forked child, only its exit status
                traceback.print_exc()
            finally:
                os._exit(status)
        for fd in (config_fd, wire_fd):
            if fd >= 0:
                os.close(fd)
        self._agents[pid] = order.name
        self._send(Forked(order.name, pid))

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            name = self._agents.pop(pid, None)
            # Only agents should be our children; anything else was left by one that died.
            end_descendants(spare=self._agents)
            if name is not None:
                self._send(Gone(name, process_ending(os.waitstatus_to_exitcode(status))))


def become_agent(
    program: Program, handed: tuple[int, int], gpus: tuple[str, ...], liveness_fds: tuple[int, ...], version: str
) -> None:
    """Become an agent, with a template below it or in itself.

    A worker that inherits its connection to the driver has no keys, and one thread only: a runner that is reused can be
    forked from the agent. Otherwise a template is forked first. A config with keys is read only then: no process in
    which user code runs ever has it in its memory.

    Args:
        program: What runners run.
        handed: The descriptors of the config and of the connection, -1 if there is none to inherit.
        gpus: Devices of this worker.
        liveness_fds: What shows that the driver is gone.
        version: Version of Cargobike in the driver.
    """
    os.setpgid(0, 0)
    adopt_orphans()
    agent_runner_end, runner_end = _pair()
    stdout_read, stdout_write = os.pipe()
    stderr_read, stderr_write = os.pipe()
    flags = mmap.mmap(-1, mmap.PAGESIZE)
    stack_fd = os.memfd_create("cargobike-stack")
    mine = (stdout_read, stderr_read, agent_runner_end.fileno(), *liveness_fds)
    pipes = (stdout_write, stderr_write)
    config_fd, wire_fd = handed

    def seat_of(settings: _Settings) -> Seat:
        os.environ[PROJECT] = settings.project
        return Seat(
            agent=runner_end,
            flags=flags,
            folder=settings.folder,
            project=settings.project,
            gpus=gpus,
            reuse=settings.reuse,
            driver_host=settings.driver_host,
            files_travel=settings.files_travel,
            stack_fd=stack_fd,
            line=line[1] if line is not None else None,
        )

    def below(template: TemplateEnd) -> Below:
        return Below(
            template=template,
            runner=agent_runner_end,
            stdout_fd=stdout_read,
            stderr_fd=stderr_read,
            flags=memoryview(flags),
            liveness_fds=liveness_fds,
            stack_fd=stack_fd,
            line=line,
        )

    line: tuple[socket.socket, socket.socket] | None = None
    config = AgentConfig.decode(_read_all(config_fd)) if wire_fd >= 0 else None
    if config is not None and config.reuse:
        line = _pair()

        def leave_behind() -> None:
            volunteer()
            for fd in (*mine, wire_fd):
                os.close(fd)
            if line is not None:
                line[0].close()
            _redirect(*pipes)
            settle(seat)

        connection = PairConnection(wire_fd)
        seat = seat_of(_settings_of(config))
        template = TemplateHere(program, seat, connection.poller, leave_behind)
        run_agent(AgentLoop(config, connection, below(template), gpus=gpus, version=version))
        return

    agent_end, template_end = _pair()
    settings_read, settings_write = os.pipe()
    me = os.getpid()
    template_pid = fork()
    if template_pid == 0:
        try:
            for fd in (wire_fd if config is not None else config_fd, settings_write, *mine):
                os.close(fd)
            agent_end.close()
            _redirect(*pipes)
            settings = _decode_settings(_read_all(settings_read))
            serve(template_end, program, seat_of(settings), me)
        except BaseException:  # noqa: BLE001 - no exception may leave a forked child, only its exit status
            traceback.print_exc()
        finally:
            os._exit(1)
    for fd in (*pipes, settings_read):
        os.close(fd)
    template_end.close()
    runner_end.close()
    template_below = below(TemplateBelow(template_pid, agent_end))
    if config is None:
        _run_with_keys(config_fd, settings_write, template_below, gpus, version)
        return
    with os.fdopen(settings_write, "wb") as pipe:
        pipe.write(_encode(_settings_of(config)))
    run_agent(AgentLoop(config, PairConnection(wire_fd), template_below, gpus=gpus, version=version))


def _run_with_keys(config_fd: int, settings_fd: int, below: Below, gpus: tuple[str, ...], version: str) -> None:
    """Be the agent of a worker that connects to its driver over the network."""
    # Not for workers that inherit their connection: every import delays every worker.
    from cargobike.workers.wire.connection import Connection  # noqa: PLC0415

    config = AgentConfig.decode(_read_all(config_fd))
    project, folder = Path(config.project), Path(config.folder)
    courier: Courier | None = None
    if config.marker and not os.path.exists(os.path.join(config.folder, config.marker)):
        # It is not needed on the driver's own machine, and every import delays every worker.
        from cargobike.workers.files.courier import Courier, scratch_for  # noqa: PLC0415

        folder = folder.relative_to(project)
        project = scratch_for(config)
        folder = project / folder
        courier = Courier(config, project)
    settings = _Settings(str(folder), str(project), config.reuse, host_of(config.address), courier is not None)
    with os.fdopen(settings_fd, "wb") as pipe:
        pipe.write(_encode(settings))
    try:
        run_agent(AgentLoop(config, Connection(config), below, gpus=gpus, version=version, courier=courier))
    finally:
        if courier is not None:
            courier.clear_up()


def _pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return ends


class _Settings(msgspec.Struct, frozen=True):
    """The part of an agent's config that its template may know."""

    folder: str
    project: str
    reuse: bool
    driver_host: str
    files_travel: bool


_decode_settings = msgspec.msgpack.Decoder(_Settings).decode


def _settings_of(config: AgentConfig) -> _Settings:
    return _Settings(config.folder, config.project, config.reuse, host_of(config.address), files_travel=False)


def _redirect(stdout_fd: int, stderr_fd: int) -> None:
    """Send output to the agent, line by line, and take input from nowhere."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (stdout_fd, 1), (stderr_fd, 2)):
        os.dup2(source, target)
        os.close(source)
    sys.stdout, sys.stderr = open_stream(1), open_stream(2)


def _read_all(fd: int) -> bytes:
    """Read a descriptor from its beginning (where it has one) to its end, and close it."""
    try:
        with contextlib.suppress(OSError):  # a pipe has no beginning
            os.lseek(fd, 0, os.SEEK_SET)
        pieces: list[bytes] = []
        while piece := os.read(fd, _PIECE):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def main(control_fd: int, make: MakeProgram) -> None:
    """Run the host of workers for a program; never returns.

    Args:
        control_fd: The connection to the engine.
        make: Makes the program from its payload.
    """
    set_handler(signal.SIGINT, IGNORED)
    os.closerange(DRIVER_FD + 1, os.sysconf("SC_OPEN_MAX"))  # what user code may have left open for its children
    for fd in (control_fd, DRIVER_FD):
        os.set_inheritable(fd, False)
    try:
        host = Host(socket.socket(fileno=control_fd), make)
        host.serve()
        host.see_agents_off()
    finally:
        end_descendants()
        os._exit(0)
