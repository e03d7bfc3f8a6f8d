"""What a runner does between two assignments."""

from __future__ import annotations

import mmap
import socket
from collections.abc import Iterator

import pytest

from cargobike.workers import runner
from cargobike.workers.program import Seat
from cargobike.workers.wire.messages import Ended


class Idle:
    """A program that does nothing."""

    def run(self, seat: Seat, packet: bytes) -> Ended[int]:
        return Ended(1, 1, len(packet))


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Seat]]:
    agent, mine = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with agent, mine:
        yield agent, Seat(agent=mine, flags=mmap.mmap(-1, 1), folder="", project="", reuse=True, line=mine)


def test_what_was_said_before_the_end_is_not_left_to_the_next_assignment(ends: tuple[socket.socket, Seat]) -> None:
    agent, seat = ends
    agent.send(b"for this one")
    runner._work(Idle(), seat, b"packet", frozenset())  # type: ignore[arg-type]
    with pytest.raises(BlockingIOError):
        seat.agent.recv(100, socket.MSG_DONTWAIT)


def test_what_is_said_once_the_end_was_told_reaches_the_next_assignment(ends: tuple[socket.socket, Seat]) -> None:
    agent, seat = ends
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        runner._work(Idle(), seat, b"packet", frozenset())  # type: ignore[arg-type]
        assert agent.recv(1000), "the agent hears of the end, and begins the next one"
        agent.send(b"for the next one")
        ours.send(b"assignment")
        assert runner._Line(theirs).next() == b"assignment"
    assert seat.agent.recv(100, socket.MSG_DONTWAIT) == b"for the next one"
