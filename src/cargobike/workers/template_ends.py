"""The agent's connection to its template: in a process below it, or in its own."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from cargobike.workers.program import Program, Seat
from cargobike.workers.template_loop import Surroundings, TemplateLoop
from cargobike.workers.wire.inner import FromTemplate, Start, ToTemplate, decode_from_template
from cargobike.workers.wire.messages import encode_message
from cargobike.workers.wire.ways import Poller


class TemplateEnd(Protocol):
    """What an agent can do with its template.

    Attributes:
        pid: The process below which runners are.
        is_gone: Whether it has ended.
    """

    pid: int
    is_gone: bool

    def join(self, poller: Poller) -> None:
        """Make a poller wait for it."""

    def tell(self, message: ToTemplate) -> None:
        """Tell it something."""

    def attend(self, ready: Mapping[Any, int]) -> list[FromTemplate]:
        """Return what it has to say."""

    @property
    def spared(self) -> Collection[int]:
        """Processes below the agent that are not left over from a trial."""

    def close(self) -> None:
        """End it, and its runners."""


class TemplateBelow:
    """A template in a process of its own.

    It is needed where the agent has keys, which no process that runs user code may ever hold. And where each trial gets
    a fresh process it is cheaper: after a fork both sides copy each page that they write to, and agents write to more.

    Args:
        pid: Its process.
        channel: Our end of the connection.
    """

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self.is_gone = False
        self._channel = channel

    def join(self, poller: Poller) -> None:
        """Make a poller wait for it."""
        poller.register(self._channel.fileno(), select.POLLIN)

    def tell(self, message: ToTemplate) -> None:
        """Tell it something."""
        # If it has ended, we are about to hear of that. If it does not read, it is given up before long.
        flags = 0 if type(message) is Start else socket.MSG_DONTWAIT
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionError):
            self._channel.send(encode_message(message), flags)

    def attend(self, ready: Mapping[Any, int]) -> list[FromTemplate]:
        """Return what it has to say."""
        if self._channel.fileno() not in ready:
            return []
        packet = self._channel.recv(1 << 16)
        if not packet:
            self.is_gone = True
            return []
        return [decode_from_template(packet)]

    @property
    def spared(self) -> Collection[int]:
        """The template."""
        return (self.pid,)

    def close(self) -> None:
        """End it, and its runners."""
        self._channel.close()


class TemplateHere:
    """The agent's own process as the template: it has one thread, no keys, and has run nothing of the user's.

    For runners that are reused: there is no spare to fork and nothing to import for the next one.

    Args:
        program: What runners run.
        seat: Where they sit.
        leave_behind: Called in a new runner, to close what is the agent's alone.
    """

    def __init__(self, program: Program, seat: Seat, leave_behind: Callable[[], object]) -> None:
        self.pid = os.getpid()
        self.is_gone = False
        self._program = program
        self._seat = seat
        self._leave_behind = leave_behind
        self._loop: TemplateLoop | None = None
        self._news: list[FromTemplate] = []

    def join(self, poller: Poller) -> None:
        """Make a poller wait for the ends of runners."""
        surroundings = Surroundings(poller, self._news.append, self._leave_behind)
        self._loop = TemplateLoop(self._program, self._seat, surroundings)

    @property
    def _here(self) -> TemplateLoop:
        assert self._loop is not None
        return self._loop

    def tell(self, message: ToTemplate) -> None:
        """Do what is asked."""
        self._here.hear(message)

    def attend(self, ready: Mapping[Any, int]) -> list[FromTemplate]:
        """Take care of runners that have ended; returns what there is to say."""
        self._here.attend(ready)
        news = self._news[:]
        self._news.clear()
        return news

    @property
    def spared(self) -> Collection[int]:
        """The runner."""
        return self._here.pids

    def close(self) -> None:
        """End all runners."""
        self._here.kill_all()
