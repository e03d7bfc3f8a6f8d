"""A rehearsal: the host does once what each of its workers is going to do first, before it forks any of them.

A forked process copies each page that it writes to, and CPython writes to pages that nobody changes: it counts how
often a function was called, adapts its instructions, and notes where a type has an attribute. What is done here is
noted once, in memory that all workers share. Agents and runners are the real ones; their driver is played by us.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import sys
import time
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from cargobike.workers import runner
from cargobike.workers.agent_loop import AgentLoop, Below
from cargobike.workers.program import Program, Seat
from cargobike.workers.template_ends import TemplateHere
from cargobike.workers.template_loop import Surroundings, TemplateLoop
from cargobike.workers.wire.inner import Exited, FromTemplate, Leave, Start, Started, ToTemplate, decode_for_runner
from cargobike.workers.wire.messages import Assign, Ended, Message, Release, encode_message
from cargobike.workers.wire.pairs import ADDRESS, PairConnection
from cargobike.workers.wire.ways import AgentConfig

_ASSIGNMENTS = 20
"""So many make an agent's functions warm: CPython adapts a function from its eighth call on."""
_RUNNERS = 5
_PATIENCE_S = 5.0
_QUIET_AFTER_S = 600.0

Understudy = tuple[Program, bytes]


def rehearse(understudy: Understudy | None) -> None:
    """Let a worker of each kind live through some assignments, in this process.

    It must have one thread and no children, for an agent ends what is below it; and no library that computes, for its
    children could not use that any more.

    Args:
        understudy: What runners run, and an assignment for it; without, runners are not rehearsed.
    """
    clear = getattr(sys, "_clear_internal_caches", getattr(sys, "_clear_type_cache", None))  # the first from 3.13 on
    if clear is not None:  # what has loaded all this would be replaced entry by entry, in each worker anew
        clear()
    for reuse in (True, False):
        rehearse_agent(reuse=reuse)
        rehearse_template(reuse=reuse)
        if understudy is not None:
            for _ in range(_RUNNERS):
                rehearse_runner(*understudy, reuse=reuse)


def rehearse_agent(*, reuse: bool, count: int = _ASSIGNMENTS) -> int:
    """Let an agent pass on some assignments; returns how many of them have ended.

    Args:
        reuse: Whether runners take one assignment after the other.
        count: How many assignments there are.

    Raises:
        ChildProcessError: If they do not come to an end.
    """
    driver, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    runners, ours = _pair()
    line = _pair() if reuse else None
    (stdout, stdout_end), (stderr, stderr_end) = os.pipe(), os.pipe()
    config = AgentConfig.decode(AgentConfig("w0", ADDRESS, b"", b"", b"", "", "", reuse).encode())
    template = _PlayedTemplate(driver, ours, line[1] if line is not None else None, count)
    below = Below(template, runners, stdout, stderr, memoryview(mmap.mmap(-1, mmap.PAGESIZE)), (), -1, line)
    connection = PairConnection(theirs.detach())
    try:
        AgentLoop(config, connection, below, gpus=(), version="").serve()
    finally:
        connection.close(0)
        for fd in (stdout, stdout_end, stderr, stderr_end):
            os.close(fd)
        for end in (driver, runners, ours, *(line or ())):
            end.close()
    return template.ended


class _PlayedTemplate:
    """Template, runner and driver of an agent that rehearses, all in its own process; a `TemplateEnd`.

    Args:
        driver: The driver's end of its connection.
        runner: The runner's end of its connection.
        line: Where the next assignments of a runner come from, if it takes several.
        count: How many assignments to give.
    """

    def __init__(self, driver: socket.socket, runner: socket.socket, line: socket.socket | None, count: int) -> None:
        self.pid = os.getpid()
        self.is_gone = False
        self.ended = 0
        self._driver = driver
        self._runner = runner
        self._line = line
        self._left = count
        self._give_up_at = time.monotonic() + _PATIENCE_S
        self._news: list[FromTemplate] = []

    def join(self, poller: Any) -> None:
        """Make a poller wait for what the agent says to driver and runner."""
        for source in (self._driver, self._line):
            if source is not None:
                source.setblocking(False)
                poller.register(source, select.POLLIN)

    def tell(self, message: ToTemplate) -> None:
        """Fork no runner, but work on its assignment."""
        if isinstance(message, Start):
            self._news.append(Started(self.pid))
            self._work(bytes(message.assign))

    def _work(self, packet: bytes) -> None:
        assign = decode_for_runner(packet)
        if isinstance(assign, Assign):
            self.ended += 1
            self._runner.send(encode_message(Ended(assign.task, assign.attempt, None)))
        if isinstance(assign, Leave) or self._line is None:
            self._news.append(Exited(0, 0))

    def attend(self, ready: Mapping[Any, int]) -> list[FromTemplate]:
        """Hear the agent; return what it is to know of its runner."""
        self.is_gone = time.monotonic() > self._give_up_at  # without its template an agent leaves
        if self._line is not None and (packet := _read(self._line)):
            self._work(packet)
        if _read(self._driver):
            self._left -= 1
            self._say(Assign(self._left, 1, None, _QUIET_AFTER_S) if self._left >= 0 else Release())
        news, self._news = self._news, []
        return news

    def _say(self, message: Message) -> None:
        packet = encode_message(message)
        self._driver.send(len(packet).to_bytes(4, "big") + packet)

    @property
    def spared(self) -> Collection[int]:
        """There is nothing below."""
        return ()

    def close(self) -> None:
        """There is nothing to end."""


def rehearse_template(*, reuse: bool) -> bool:
    """Let a template fork a runner, which ends at once; returns whether it has heard of that.

    Args:
        reuse: Whether it is the agent's own process, as it is where runners are reused.
    """
    agent, seat = _seat(reuse=reuse)
    poller = select.poll()
    start = Start(msgspec.Raw(encode_message(Assign(0, 1, None))))
    try:
        if reuse:
            template = TemplateHere(_NOTHING, seat, poller, lambda: os._exit(0))
            template.tell(start)
            return any(isinstance(one, Exited) for _ in range(2) for one in template.attend(_wait(poller)))
        said: list[FromTemplate] = []
        loop = TemplateLoop(_NOTHING, seat, Surroundings(poller, said.append, lambda: os._exit(0)))
        loop.hear(start)
        loop.attend(_wait(poller))
        return any(isinstance(one, Exited) for one in said)
    finally:
        agent.close()
        seat.agent.close()


def rehearse_runner(program: Program, packet: bytes, *, reuse: bool) -> list[bytes]:
    """Let a runner work on an assignment, or on two if it is reused; returns what it has said.

    Args:
        program: What to run.
        packet: The encoded assignment.
        reuse: Whether it takes one assignment after the other.
    """
    agent, seat = _seat(reuse=reuse)
    line, end = _pair()
    seat.line = end if reuse else None
    if reuse:
        line.send(packet)
        line.send(encode_message(Leave()))
    try:
        runner.work_on_all(program, seat, packet, frozenset(sys.modules))
        agent.setblocking(False)
        return [*iter(lambda: _read(agent), b"")]
    finally:
        for one in (agent, seat.agent, line, end):
            one.close()


class _Nothing:
    """A program for templates whose runners end before they run anything."""

    preload: Collection[str] = ()

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a runner that only rehearses has called {name}")


_NOTHING: Any = _Nothing()


def _seat(*, reuse: bool) -> tuple[socket.socket, Seat]:
    agent, ours = _pair()
    return agent, Seat(agent=ours, flags=mmap.mmap(-1, mmap.PAGESIZE), folder="", project="", reuse=reuse)


def _pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _wait(poller: select.poll) -> dict[int, int]:
    return dict(poller.poll(_PATIENCE_S * 1000))


def _read(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except BlockingIOError:
        return b""
