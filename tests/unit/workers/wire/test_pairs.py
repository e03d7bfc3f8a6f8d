"""Both ends of an inherited connection, in one process."""

from __future__ import annotations

import os
import random
import select
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.experiments.trial.messages import decode_from_worker
from cargobike.workers.wire.messages import Beat, Bye, Hello, Output, Release, decode_driver_message, encode_message
from cargobike.workers.wire.pairs import Packets, PairConnection, PairServer

Server = PairServer[Any]
HELLO = encode_message(Hello("w0", 1, "host", "3.11", "0"))


@pytest.fixture
def server() -> Iterator[Server]:
    made: Server = PairServer(decode_from_worker)
    yield made
    made.close()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[[str], PairConnection]]:
    """Connect agents, as if they had inherited their ends."""
    made: list[PairConnection] = []

    def connect(name: str) -> PairConnection:
        made.append(PairConnection(os.dup(server.issue(name).descriptor)))
        return made[-1]

    yield connect
    for connection in made:
        connection.close(0)


def hear(server: Server) -> list[tuple[str, Any]]:
    """Receive until nothing more has come."""
    heard: list[tuple[str, Any]] = []
    while server.poll(0):
        messages, lost = server.receive()
        heard += messages
        if not messages and not lost:
            break
    return heard


def test_messages_travel_both_ways(server: Server, connect: Callable[[str], PairConnection]) -> None:
    agent = connect("w0")
    agent.begin(HELLO)
    agent.send([encode_message(Beat()), encode_message(Bye())])
    assert [type(message) for _, message in hear(server)] == [Hello, Beat, Bye]
    server.send("w0", Release())
    server.flush()
    assert not server.has_mail
    assert agent.has_come(dict(agent.poller.poll(0)))
    assert [decode_driver_message(packet) for packet in agent.receive()] == [Release()]
    assert not agent.is_closed


def test_each_worker_has_a_connection_of_its_own(server: Server, connect: Callable[[str], PairConnection]) -> None:
    first, second = connect("w0"), connect("w1")
    second.send([encode_message(Beat())])
    first.send([encode_message(Bye())])
    assert sorted(hear(server), key=lambda one: one[0]) == [("w0", Bye()), ("w1", Beat())]
    server.send("w1", Release())
    server.flush()
    assert first.receive() == []
    assert len(second.receive()) == 1


def test_an_agent_that_is_gone_is_noticed_after_what_it_said(
    server: Server, connect: Callable[[str], PairConnection]
) -> None:
    agent = connect("w0")
    agent.begin(HELLO)
    hear(server)
    agent.send([encode_message(Bye())])
    agent.close(0)
    assert server.poll(1000)
    assert server.receive() == ([("w0", Bye())], [])
    assert server.poll(1000)
    assert server.receive() == ([], ["w0"])
    assert not server.poll(0), "it is noticed once"
    server.send("w0", Release())
    server.flush()


def test_one_that_has_died_since_its_greeting_has_never_come(
    server: Server, connect: Callable[[str], PairConnection]
) -> None:
    agent = connect("w0")
    agent.begin(HELLO)
    agent.close(0)
    assert server.poll(1000)
    assert server.receive() == ([], ["w0"])


def test_a_driver_that_closes_its_end_is_noticed(server: Server, connect: Callable[[str], PairConnection]) -> None:
    agent = connect("w0")
    agent.begin(HELLO)
    hear(server)
    server.forget("w0")
    assert agent.has_come(dict(agent.poller.poll(1000)))
    assert agent.receive() == []
    assert agent.is_closed
    agent.send([encode_message(Bye())])


def test_a_forgotten_worker_is_neither_heard_nor_told(server: Server, connect: Callable[[str], PairConnection]) -> None:
    agent = connect("w0")
    agent.begin(HELLO)
    server.forget("w0")
    server.forget("w0")
    assert hear(server) == []
    server.send("w0", Release())
    assert not server.has_mail


def test_nonsense_is_ignored_and_the_next_message_is_heard(
    server: Server, connect: Callable[[str], PairConnection], caplog: pytest.LogCaptureFixture
) -> None:
    connect("w0").send([b"nonsense", b"", encode_message(Beat())])
    assert hear(server) == [("w0", Beat())]
    assert "not a message" in caplog.text


def test_a_length_that_nobody_sends_ends_the_connection(server: Server) -> None:
    with socket.socket(fileno=os.dup(server.issue("w0").descriptor)) as agent:
        agent.sendall(b"\xff\xff\xff\xff" + b"x" * 100)
        assert server.poll(1000)
        assert server.receive() == ([], ["w0"])


def test_whoever_does_not_read_keeps_nobody_waiting_and_loses_nothing(
    server: Server, connect: Callable[[str], PairConnection]
) -> None:
    agent = connect("w0")
    pieces = [Output(0, "stdout", bytes([number]) * 500_000) for number in range(20)]
    for piece in pieces:
        agent.send([encode_message(piece)])
    assert agent.in_flight > 0
    heard: list[Any] = []
    while agent.in_flight:
        heard += hear(server)
        agent.has_come(dict(agent.poller.poll(1000)))
    heard += hear(server)
    assert [message for _, message in heard] == pieces
    assert not any(what & select.POLLOUT for _, what in agent.poller.poll(0)), "it does not wait for room any more"
    for _ in range(4000):
        server.send("w0", Output(0, "stdout", b"y" * 1000))
        server.flush()
    told = 0
    while told < 4000:
        told += len(agent.receive())
        if server.poll(0):
            server.receive()


def test_what_is_left_is_sent_when_an_agent_closes(server: Server, connect: Callable[[str], PairConnection]) -> None:
    agent = connect("w0")
    agent.begin(HELLO)
    hear(server)
    agent.send([encode_message(Output(0, "stdout", b"x" * 100_000))])
    agent.send([encode_message(Bye())])
    agent.close(1000)
    assert [type(message) for _, message in hear(server)] == [Output, Bye]


def test_a_copy_of_the_driver_holds_no_connection(server: Server, connect: Callable[[str], PairConnection]) -> None:
    agent = connect("w0")
    agent.begin(HELLO)
    hear(server)
    begun, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go_on[1])
        os.write(begun[1], b"x")
        os.read(go_on[0], 1)
        os._exit(0)
    try:
        os.read(begun[0], 1)
        server.forget("w0")
        assert agent.has_come(dict(agent.poller.poll(1000)))
        agent.receive()
        assert agent.is_closed
    finally:
        for fd in (*begun, *go_on):
            os.close(fd)
        os.waitpid(child, 0)


@given(st.lists(st.binary(max_size=300)), st.integers(0, 2**32))
def test_packets_arrive_whole_however_the_stream_is_cut(items: list[bytes], seed: int) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    cuts = random.Random(seed)
    with theirs:
        packets = Packets(ours)
        stream = b"".join(len(item).to_bytes(4, "big") + item for item in items)
        heard: list[bytes] = []
        while stream:
            size = cuts.randint(1, 40)
            theirs.sendall(stream[:size])
            stream = stream[size:]
            heard += packets.receive()
        assert heard == items
        assert not packets.is_closed
        packets.close()
