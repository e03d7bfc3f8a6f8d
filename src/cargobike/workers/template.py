"""The template: a process that has imported everything and run nothing, and forks runners in milliseconds.

It has one thread and executes no user code itself: a single numeric operation before the fork would leave thread pools
behind that do not exist in the child, and hang it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import socket
from collections import deque
from dataclasses import dataclass

import msgspec

from cargobike.experiments.trial import runner
from cargobike.experiments.trial.runner import Seat
from cargobike.workers.packets import LARGEST
from cargobike.workers.processes import die_with_parent, volunteer

_SPARE_FROM = 2
_SPARE_AFTER_MS = 5  # by then the one that was just given its assignment is on its way


class Exit(msgspec.Struct, frozen=True, array_like=True):
    """How a runner ended: its wait status and the most memory it used.

    `goes_on`, known only after the agent has asked: an assignment was on its way to the runner, and gets a new one.
    """

    pid: int
    status: int
    peak_memory_bytes: int
    goes_on: bool | None = None


def serve(channel: socket.socket, seat: Seat, parent_pid: int) -> None:
    """Fork runners on demand until the agent is gone; never returns.

    Packets from the agent: `A` assignment, `K` kill the runner, `D` have it show its stack,
    `P` modules to import, `U` begin anew if the dead
    runner has left an assignment unread. Packets to it: `X` exit.
    """
    die_with_parent(parent_pid)
    volunteer()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    template = Template(channel, seat)
    while True:
        template.serve_once()


@dataclass(slots=True)
class _Runner:
    """A runner that waits for its first assignment, or works."""

    pid: int
    fd: int
    inbox: socket.socket
    is_spare: bool
    assignment: bytes = b""
    was_there: bool = True
    is_killed: bool = False

    def begin(self, assignment: bytes) -> None:
        """Give it its first assignment."""
        self.assignment = assignment
        try:
            self.inbox.send(assignment)
        except ConnectionError:
            self.was_there = False

    def has_begun(self) -> bool:
        """Tell of a dead one whether it has taken its assignment: the kernel says if it was left unread."""
        try:
            return self.was_there and not self.inbox.recv(1, socket.MSG_DONTWAIT)
        except OSError:
            return False

    def kill(self) -> None:
        """Kill it and what it started in its own process group."""
        self.is_killed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def forget(self) -> None:
        """Close our ends."""
        os.close(self.fd)
        self.inbox.close()


class Template:
    """The state of a template.

    From the second assignment on it keeps a *spare*: a runner that was forked ahead and has run nothing, so that the
    next one begins at once. Who has but one trial to run needs none. A spare is thrown away when the template learns
    what the next runner should have imported.
    """

    def __init__(self, channel: socket.socket, seat: Seat) -> None:
        self._channel = channel
        self._seat = seat
        self._waiting: deque[bytes] = deque()
        self._learned: list[str] = []
        self._runner: _Runner | None = None
        self._spare: _Runner | None = None
        self._spare_is_due = False
        self._begun = 0
        self._end: Exit | None = None
        self._poller = select.poll()
        self._poller.register(channel, select.POLLIN)

    def serve_once(self) -> None:
        """Do what there is to do, then wait for news."""
        if self._runner is None and self._waiting:
            self._begin(self._waiting.popleft())
        ready = self._poller.poll(_SPARE_AFTER_MS if self._spare_is_due else None)
        if not ready:
            self._spare_is_due = False
            self._spare = self._fork(is_spare=True)
        for fd, _ in ready:
            if self._runner is not None and fd == self._runner.fd:
                self._runner_ended(self._runner)
            elif self._spare is not None and fd == self._spare.fd:
                self._drop_spare(self._spare)
            elif fd == self._channel.fileno():
                self._hear_agent()

    def _begin(self, assignment: bytes) -> None:
        self._runner, self._spare = self._spare or self._fork(is_spare=False), None
        self._runner.begin(assignment)
        self._begun += 1
        self._spare_is_due = not self._seat.reuse and self._begun >= _SPARE_FROM

    def _runner_ended(self, ended: _Runner) -> None:
        self._runner = None
        if ended.is_spare and not ended.is_killed and not ended.has_begun():
            # Somebody has ended it while it was a spare: that is no failure of the trial.
            self._waiting.appendleft(ended.assignment)
            self._bury(ended)
            return
        status, peak_memory_bytes = self._bury(ended)
        self._end = Exit(ended.pid, status, peak_memory_bytes)
        self._channel.send(b"X" + msgspec.msgpack.encode(self._end))
        self._learn()

    def _learn(self) -> None:
        """Import what a runner needed, so that the next one finds it there; a failure is the runner's to report."""
        if self._learned and self._spare is not None:
            self._drop_spare(self._spare)
            self._spare_is_due = True
        for name in self._learned:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        self._learned.clear()

    def _drop_spare(self, spare: _Runner) -> None:
        """End a spare; the next one comes with the next assignment, else who ends them would keep us forking."""
        spare.kill()
        self._bury(spare)
        self._spare = None

    def _bury(self, dead: _Runner) -> tuple[int, int]:
        self._poller.unregister(dead.fd)
        dead.forget()
        _, status, usage = os.wait4(dead.pid, 0)
        return status, usage.ru_maxrss * 1024

    def _hear_agent(self) -> None:
        packet = self._channel.recv(LARGEST)
        if not packet:
            for below in (self._runner, self._spare):
                if below is not None:
                    below.kill()
            os._exit(0)
        kind, body = packet[:1], packet[1:]
        if kind == b"A":
            self._waiting.append(body)
        elif kind == b"K" and self._runner is not None:
            self._runner.kill()
        elif kind == b"D" and self._runner is not None:
            os.kill(self._runner.pid, runner.STACK_SIGNAL)
        elif kind == b"U" and self._end is not None:
            self._waiting.extend(_unread(self._seat.agent))
            self._end = msgspec.structs.replace(self._end, goes_on=bool(self._waiting))
            self._channel.send(b"X" + msgspec.msgpack.encode(self._end))
        elif kind == b"P":
            self._learned += msgspec.msgpack.decode(body, type=list[str])
            if self._runner is None:
                self._learn()

    def _fork(self, *, is_spare: bool) -> _Runner:
        me = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
        pid = os.fork()
        if pid == 0:
            try:
                self._channel.close()
                ours.close()
                for other in (self._runner, self._spare):
                    if other is not None:
                        other.forget()
                runner.main(self._seat, theirs, me, is_spare=is_spare)
            finally:
                os._exit(70)
        theirs.close()
        forked = _Runner(pid, os.pidfd_open(pid), ours, is_spare)
        self._poller.register(forked.fd, select.POLLIN)
        return forked


def _unread(runner_end: socket.socket) -> list[bytes]:
    """Take what the dead runner has not read, so that its successor does not take it for its own."""
    found: list[bytes] = []
    with contextlib.suppress(BlockingIOError):
        while packet := runner_end.recv(LARGEST, socket.MSG_DONTWAIT):
            if packet[:1] == b"A":
                found.append(packet[1:])
    return found
