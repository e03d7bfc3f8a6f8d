"""The template: a process that has imported everything and run nothing, and forks runners in milliseconds.

It has one thread and executes no user code itself: a single numeric operation before the fork would leave thread pools
behind that do not exist in the child, and hang it. An agent without keys whose runner is reused is its own template.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from cargobike.core.running.forks import fork
from cargobike.workers import runner, template
from cargobike.workers.processes import IGNORED, die_with_parent, set_handler, volunteer
from cargobike.workers.program import Program, Seat
from cargobike.workers.wire.inner import FromTemplate, Started, ToTemplate, decode_for_runner, decode_for_template
from cargobike.workers.wire.messages import Assign, encode_message
from cargobike.workers.wire.packets import LARGEST
from cargobike.workers.wire.ways import Poller

_FAILED = 70  # the exit code of a program that raised instead of returning how it ended
_REST_AFTER_MS = 5  # by then the runner that just got its assignment is on its way


def serve(channel: socket.socket, program: Program, seat: Seat, parent_pid: int) -> None:
    """Fork runners on demand until the agent is gone; never returns."""
    die_with_parent(parent_pid)
    volunteer()
    set_handler(signal.SIGINT, IGNORED)
    runner.settle(seat)
    poller = select.poll()
    poller.register(channel, select.POLLIN)
    surroundings = Surroundings(poller, lambda message: channel.send(encode_message(message)), channel.close)
    loop = TemplateLoop(program, seat, surroundings)
    while True:
        ready = dict(poller.poll(_REST_AFTER_MS if loop.rest_is_due else None))
        if not ready:
            loop.rest()
        if channel.fileno() in ready:
            packet = channel.recv(LARGEST)
            if not packet:
                loop.kill_all()
                os._exit(0)
            loop.hear(decode_for_template(packet))
        loop.attend(ready)


class Surroundings(msgspec.Struct, frozen=True):
    """What a template needs of the process that it lives in.

    Attributes:
        poller: Waits for the ends of runners, among others.
        tell: Tells the agent something.
        leave_behind: Called in a runner that was just forked, to close what belongs to the process it came from.
    """

    poller: Poller
    tell: Callable[[FromTemplate], object]
    leave_behind: Callable[[], object]


class _Runner(msgspec.Struct):
    """A runner that waits for its first assignment, or works; one that was born with it has no inbox."""

    number: int
    pid: int
    fd: int
    inbox: socket.socket | None
    was_there: bool = True

    def begin(self, assignment: bytes) -> None:
        """Give it its first assignment."""
        assert self.inbox is not None
        try:
            self.inbox.send(assignment)
        except ConnectionError:
            self.was_there = False

    def has_begun(self) -> bool:
        """Tell whether a dead runner had taken its assignment: the kernel knows if it was left unread."""
        if self.inbox is None:
            return True
        try:
            return self.was_there and not self.inbox.recv(1, socket.MSG_DONTWAIT)
        except OSError:
            return False

    def kill(self) -> None:
        """Kill it and what it started in its own process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def forget(self) -> None:
        """Close our ends."""
        os.close(self.fd)
        if self.inbox is not None:
            self.inbox.close()


class TemplateLoop:
    """Carries out what the template decides, in a process of its own or in the agent's."""

    def __init__(self, program: Program, seat: Seat, surroundings: Surroundings) -> None:
        self._program = program
        self._seat = seat
        self._surroundings = surroundings
        self._template = template.Template(reuse=seat.reuse)
        self._runners: dict[int, _Runner] = {}
        self._by_fd: dict[int, _Runner] = {}
        self._modules = frozenset[str]()
        self._unsaid: Started | None = None
        self._actions: dict[type, Callable[[Any], object]] = {
            template.Fork: self._fork,
            template.Give: self._give,
            template.KillRunner: lambda command: self._runners[command.runner].kill(),
            template.Drop: self._drop,
            template.AskForStack: lambda command: os.kill(self._runners[command.runner].pid, runner.STACK_SIGNAL),
            template.TakeUnread: lambda _: self._happen(template.Unread(_unread(self._seat.agent))),
            template.Tell: self._tell_end,
            template.ImportModules: _import_modules,
        }

    @property
    def rest_is_due(self) -> bool:
        """Whether to call `rest` when nothing happens for `_REST_AFTER_MS`."""
        return self._unsaid is not None or self._template.spare_is_due

    @property
    def pids(self) -> list[int]:
        """The processes of its runners."""
        return [one.pid for one in self._runners.values()]

    def hear(self, message: ToTemplate) -> None:
        """Do what the agent says."""
        self._happen(template.Heard(message))

    def attend(self, ready: Mapping[Any, int]) -> None:
        """Take care of runners that have ended."""
        for dead in [*filter(None, map(self._by_fd.get, ready))]:
            if dead.number not in self._runners:
                continue  # it was a spare, and dropped because of another's end
            has_begun = dead.has_begun()
            code, peak_memory_bytes = self._bury(dead)
            self._happen(template.Ended(dead.number, code, peak_memory_bytes, has_begun))

    def rest(self) -> None:
        """Use a moment in which nothing happens."""
        self.tell_start()
        self._happen(template.Rested())

    def tell_start(self) -> None:
        """Tell which runner has begun, if that was not told: its end would say so too, and mostly comes first."""
        started, self._unsaid = self._unsaid, None
        if started is not None:
            self._surroundings.tell(started)

    def _tell_end(self, command: template.Tell) -> None:
        self._unsaid = None
        self._surroundings.tell(command.exited)

    def kill_all(self) -> None:
        """End all runners."""
        for below in self._runners.values():
            below.kill()

    def _happen(self, event: template.Event) -> None:
        for command in self._template.handle(event):
            self._actions[type(command)](command)

    def _give(self, command: template.Give) -> None:
        chosen = self._runners[command.runner]
        chosen.begin(command.packet)
        self._unsaid = Started(chosen.pid)

    def _drop(self, command: template.Drop) -> None:
        spare = self._runners[command.runner]
        spare.kill()
        self._bury(spare)

    def _bury(self, dead: _Runner) -> tuple[int, int]:
        """Return the exit code of a dead runner and the most memory that it has used."""
        self._surroundings.poller.unregister(dead.fd)
        del self._runners[dead.number], self._by_fd[dead.fd]
        dead.forget()
        _, status, usage = os.wait4(dead.pid, 0)
        return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024

    def _fork(self, command: template.Fork) -> None:
        me = os.getpid()
        if not self._seat.reuse and len(self._modules) != len(sys.modules):
            # Not in the runner: to count a reference to each name there would copy the page that the name lies on.
            self._modules = frozenset(sys.modules)
        ours, theirs = (None, None) if command.packet else _pair()
        pid = fork()
        if pid == 0:
            self._be_runner(command, ours, theirs, me)
        forked = _Runner(command.runner, pid, os.pidfd_open(pid), ours)
        self._runners[forked.number] = self._by_fd[forked.fd] = forked
        self._surroundings.poller.register(forked.fd, select.POLLIN)
        if theirs is not None:
            theirs.close()
        else:
            self._unsaid = Started(pid)

    def _be_runner(
        self, command: template.Fork, ours: socket.socket | None, theirs: socket.socket | None, parent_pid: int
    ) -> NoReturn:
        try:
            self._surroundings.leave_behind()
            for other in self._runners.values():
                other.forget()
            if ours is not None:
                ours.close()

            def first() -> bytes:
                if theirs is None:
                    return command.packet
                return runner.wait_for_first(self._program, self._seat, theirs, is_spare=command.is_spare)

            runner.main(self._program, self._seat, first, parent_pid, self._modules)
        except BaseException:  # noqa: BLE001 - no exception may leave a forked child, only its exit status
            traceback.print_exc()
        finally:
            os._exit(_FAILED)


def _pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
    return ours, theirs


def _import_modules(command: template.ImportModules) -> None:
    for name in command.names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _unread(runner_end: socket.socket) -> list[bytes]:
    """Take the assignment that the dead runner has not read; what follows it stays for the runner that gets it."""
    with contextlib.suppress(BlockingIOError):
        while packet := runner_end.recv(LARGEST, socket.MSG_DONTWAIT):
            if isinstance(decode_for_runner(packet), Assign):
                return [packet]
    return []
