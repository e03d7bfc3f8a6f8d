"""The driver's end of the wire and an agent's, over a real socket in one process."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import zmq

from cargobike.core.errors import EngineError
from cargobike.core.running.hosting import Listening
from cargobike.experiments.trial.messages import decode_from_worker
from cargobike.workers.wire.connection import AgentConfig, Connection
from cargobike.workers.wire.messages import Beat, Bye, Hello, Release, encode_message
from cargobike.workers.wire.server import WireServer

Server = WireServer[Any]
PATIENCE_S = 20.0


@pytest.fixture
def server() -> Iterator[Server]:
    made: Server = WireServer(decode_from_worker)
    yield made
    made.close()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., Connection]]:
    """Connect agents; takes the name they use, the keys they have, and the key by which they know the driver."""
    made: list[Connection] = []

    def connect(name: str, keys: tuple[bytes, bytes], server_key: bytes = b"") -> Connection:
        config = AgentConfig(
            worker=name,
            address=server.address,
            server_key=server_key or server.server_key,
            public_key=keys[0],
            secret_key=keys[1],
            folder="",
            project="",
            reuse=False,
        )
        made.append(Connection(config))
        return made[-1]

    yield connect
    for connection in made:
        if not connection.socket.closed:
            connection.close(0)


def hello(name: str) -> bytes:
    return encode_message(Hello(name, 1, "host", "3.11", "0"))


def greet(server: Server, connection: Connection, name: str) -> list[tuple[str, Any]]:
    """Wait until an agent's handshake is done, introduce it, and return what the server hears."""
    received: list[tuple[str, Any]] = []
    give_up_at = time.monotonic() + PATIENCE_S
    while not connection.reconnected():
        server.poll(20)
        received += server.receive()[0]
        assert time.monotonic() < give_up_at, "the handshake was never completed"
    connection.repeat(hello(name))
    return received + hear(server, 1)


def hear(server: Server, count: int) -> list[tuple[str, Any]]:
    """Receive until so many messages have come."""
    received: list[tuple[str, Any]] = []
    give_up_at = time.monotonic() + PATIENCE_S
    while len(received) < count:
        assert time.monotonic() < give_up_at, f"only {received} came"
        server.poll(50)
        received += server.receive()[0]
    return received


def settle(server: Server, rounds: int = 10) -> list[tuple[str, Any]]:
    """Receive for a moment in which nothing is expected."""
    received: list[tuple[str, Any]] = []
    for _ in range(rounds):
        server.poll(30)
        received += server.receive()[0]
    return received


def answers(connection: Connection, count: int) -> list[msgspec.Raw]:
    received: list[msgspec.Raw] = []
    give_up_at = time.monotonic() + PATIENCE_S
    while len(received) < count:
        assert time.monotonic() < give_up_at, "no answer came"
        connection.socket.poll(50)
        received += connection.receive()
    return received


def test_messages_travel_both_ways(server: Server, connect: Callable[..., Connection]) -> None:
    connection = connect("w0", server.admit("w0"))
    (name, first), *_ = greet(server, connection, "w0")
    assert (name, type(first)) == ("w0", Hello)
    connection.send([encode_message(Beat()), encode_message(Bye())])
    assert [type(message) for _, message in hear(server, 2)] == [Beat, Bye]
    server.send("w0", Release())
    server.flush()
    assert not server.has_mail
    assert len(answers(connection, 1)) == 1


def test_what_was_not_acknowledged_is_repeated_after_a_new_greeting_once(
    server: Server, connect: Callable[..., Connection]
) -> None:
    connection = connect("w0", server.admit("w0"))
    greet(server, connection, "w0")
    server.send("w0", Release())
    server.flush()
    connection.repeat(hello("w0"))  # as after a cut: the driver cannot know whether its message had arrived
    hear(server, 1)
    assert len(answers(connection, 1)) == 1
    assert answers(connection, 0) == []


def test_a_key_that_was_not_made_here_is_refused(server: Server, connect: Callable[..., Connection]) -> None:
    server.admit("w0")
    stranger = connect("w0", zmq.curve_keypair())
    assert settle(server) == []
    assert not stranger.reconnected()


def test_a_worker_that_was_given_up_is_refused(server: Server, connect: Callable[..., Connection]) -> None:
    keys = server.admit("w0")
    server.forget("w0")
    late = connect("w0", keys)
    assert settle(server) == []
    assert not late.reconnected()
    server.send("w0", Release())
    assert not server.has_mail


def test_a_worker_cannot_speak_under_the_name_of_another(server: Server, connect: Callable[..., Connection]) -> None:
    server.admit("w0")
    impostor = connect("w0", server.admit("w1"))
    give_up_at = time.monotonic() + PATIENCE_S
    while not impostor.reconnected():
        assert time.monotonic() < give_up_at
        server.poll(20)
        server.receive()
    impostor.repeat(hello("w0"))
    assert settle(server) == []


def test_nonsense_of_a_worker_is_ignored_and_the_next_message_is_heard(
    server: Server, connect: Callable[..., Connection], caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect("w0", server.admit("w0"))
    greet(server, connection, "w0")
    connection.socket.send_multipart([b"", b"nonsense"])
    connection.socket.send_multipart([b"", b"too", b"many", b"parts"])
    connection.send([encode_message(Beat())])
    assert [type(message) for _, message in hear(server, 1)] == [Beat]
    assert "not a message" in caplog.text


def test_a_closed_connection_is_noticed(server: Server, connect: Callable[..., Connection]) -> None:
    connection = connect("w0", server.admit("w0"))
    greet(server, connection, "w0")
    connection.close(0)
    lost: list[str] = []
    give_up_at = time.monotonic() + PATIENCE_S
    while not lost:
        assert time.monotonic() < give_up_at, "the end of the connection was never noticed"
        server.poll(50)
        lost += server.receive()[1]
    assert lost == ["w0"]


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=rf"cannot listen on 127.0.0.1:{port} .* a port that is free"):
            WireServer(decode_from_worker, Listening(port=port))
