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

    For runners that are reused: there is nothing to import for the next one. The first is forked at once, before the
    agent begins its own work: what the agent has written to until then, the runner would have to keep a copy of.

    Args:
        program: What runners run.
        seat: Where they sit.
        poller: Waits for the ends of runners, among others.
        leave_behind: Called in a new runner, to close what is the agent's alone.
    """

    def __init__(self, program: Program, seat: Seat, poller: Poller, leave_behind: Callable[[], object]) -> None:
        self.pid = os.getpid()
        self.is_gone = False
        self._news: list[FromTemplate] = []
        self._loop = TemplateLoop(program, seat, Surroundings(poller, self._news.append, leave_behind))
        self._loop.rest()

    def join(self, poller: Poller) -> None:
        """Do nothing: the agent's poller waits for the ends of runners from the beginning."""

    def tell(self, message: ToTemplate) -> None:
        """Do what is asked."""
        self._loop.hear(message)
        self._loop.tell_start()

    def attend(self, ready: Mapping[Any, int]) -> list[FromTemplate]:
        """Take care of runners that have ended; returns what there is to say."""
        self._loop.attend(ready)
        self._loop.tell_start()
        news = self._news[:]
        self._news.clear()
        return news

    @property
    def spared(self) -> Collection[int]:
        """The runner."""
        return self._loop.pids

    def close(self) -> None:
        """End all runners."""
        self._loop.kill_all()
