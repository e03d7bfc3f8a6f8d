"""The driver's end of the wire and an agent's, over a real socket in one process."""

from __future__ import annotations

import os
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
from cargobike.workers.wire.connection import AgentConfig, Connection, identity_of, secured
from cargobike.workers.wire.messages import Beat, Bye, Hello, Release, encode_message
from cargobike.workers.wire.server import WireServer
from support.watching import wait_for

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
    assert {name for name, _ in settle(server)} == {"w1"}


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


# -- sockets ---------------------------------------------------------------------------------------------------------


def test_a_router_admits_known_keys_only_and_loses_nothing(server: Server) -> None:
    router = server.router
    assert router.curve_server
    assert (router.zap_domain, router.linger) == (b"cargobike", 500)
    assert (router.sndhwm, router.rcvhwm) == (0, 0), "without a limit: what waits is bounded elsewhere"
    assert router.getsockopt(zmq.MAXMSGSIZE) == 64 << 20
    assert server.address.startswith("tcp://127.0.0.1:")


def test_workers_may_reach_it_by_another_name() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    made: Server = WireServer(decode_from_worker, Listening(port=port, reach="driver.example.org"))
    try:
        assert made.address == f"tcp://driver.example.org:{port}"
        router, address = made.open_router(Listening(reach="driver.example.org"), most_bytes=1000)
        assert address.startswith("tcp://driver.example.org:")
        assert router.getsockopt(zmq.MAXMSGSIZE) == 1000
        assert (router.sndhwm, router.rcvhwm) == (16, 16), "a worker that asks without reading gets no further"
        router.close(0)
        router, address = made.open_router(Listening(), most_bytes=1000)
        assert address.startswith("tcp://127.0.0.1:")
        router.close(0)
    finally:
        made.close()


def test_a_socket_for_files_on_a_port_that_is_taken_leaves_nothing_open(server: Server) -> None:
    before = len(os.listdir("/proc/self/fd"))
    port = int(server.address.rpartition(":")[2])
    for _ in range(3):
        with pytest.raises(EngineError, match="a port that is free"):
            server.open_router(Listening(port=port), most_bytes=1000)
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= before, "ZeroMQ to close what it was told to close")


def test_closing_leaves_nothing_open() -> None:
    zmq.Context.instance()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        made: Server = WireServer(decode_from_worker)
        made.close()
        assert made.router.closed
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= before, "all to be closed")


def test_a_descriptor_that_is_watched_ends_the_wait(server: Server) -> None:
    assert server.poll(0) is False
    assert server.receive() == ([], [])
    reading, writing = os.pipe()
    try:
        server.watch(reading)
        assert server.poll(0) is False
        os.write(writing, b"x")
        assert server.poll(20_000) is True
        assert server.receive() == ([], [])
    finally:
        os.close(reading)
        os.close(writing)


# -- workers ---------------------------------------------------------------------------------------------------------


def test_workers_are_expected_until_they_have_come(server: Server, connect: Callable[..., Connection]) -> None:
    keys = server.admit("w0")
    server.admit("w1")
    assert server._expected() == 2
    connection = connect("w0", keys)
    greet(server, connection, "w0")
    assert server._expected() == 1
    server.forget("w1")
    assert server._expected() == 0
    server.forget("w0")
    assert (server._expected(), server._by_descriptor, server._by_identity, server._by_key) == (0, {}, {}, {})
    server.forget("w0")


def test_mail_for_a_worker_that_is_given_up_is_dropped(server: Server) -> None:
    server.admit("w0")
    server.send("w0", Release())
    mail = [server.has_mail]
    server.forget("w0")
    assert [*mail, server.has_mail] == [True, False]
    server.flush()


def test_what_has_come_is_acknowledged_after_a_while_or_when_asked(
    server: Server, connect: Callable[..., Connection]
) -> None:
    connection = connect("w0", server.admit("w0"))
    greet(server, connection, "w0")
    (peer,) = server._peers.values()
    for count in range(peer.unacknowledged + 1, 64):
        connection.send([encode_message(Beat())])
        hear(server, 1)
        assert (peer.unacknowledged, server.has_mail) == (count, False)
    assert connection.link.unacknowledged()
    connection.send([encode_message(Beat())])
    hear(server, 1)
    assert server.has_mail
    server.flush()
    assert (peer.unacknowledged, server.has_mail) == (0, False)
    wait_for(lambda: not (connection.receive() or connection.link.unacknowledged()), "the acknowledgement")
    connection.send([encode_message(Beat())])
    hear(server, 1)
    server.acknowledge_all()
    assert server.has_mail
    server.flush()
    wait_for(lambda: not (connection.receive() or connection.link.unacknowledged()), "the acknowledgement")


def test_a_message_is_sent_once(server: Server, connect: Callable[..., Connection]) -> None:
    connection = connect("w0", server.admit("w0"))
    greet(server, connection, "w0")
    for _ in range(2):
        server.send("w0", Release())
        server.flush()
        server.flush()
        assert len(answers(connection, 1)) == 1
    server.acknowledge_all()
    server.flush()
    connection.socket.poll(10_000)
    assert connection.receive() == []


def test_a_worker_that_connects_again_takes_its_own_place(server: Server, connect: Callable[..., Connection]) -> None:
    keys = server.admit("w0")
    first = connect("w0", keys)
    greet(server, first, "w0")
    first.close(0)
    wait_for(lambda: server.poll(20) and server.receive()[1], "the end of the first connection")
    second = connect("w0", keys)
    (name, message), *_ = greet(server, second, "w0")
    assert (name, type(message)) == ("w0", Hello)
    (peer,) = server._by_descriptor.values()
    assert peer.name == "w0"
    server.send("w0", Release())
    server.flush()
    assert len(answers(second, 1)) == 1


def test_a_worker_may_come_again_before_its_first_connection_is_known_to_be_dead(
    server: Server, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_again(context: Any, config: AgentConfig) -> zmq.Socket[bytes]:
        made = secured(context, config)
        made.reconnect_ivl = -1
        return made

    keys = server.admit("w0")
    with monkeypatch.context() as patch:
        patch.setattr("cargobike.workers.wire.connection.secured", never_again)
        first = connect("w0", keys)
    greet(server, first, "w0")
    second = connect("w0", keys)
    greet(server, second, "w0")
    second.send([encode_message(Bye())])
    assert hear(server, 1) == [("w0", Bye())]


def test_another_descriptor_of_a_worker_replaces_the_one_before(server: Server) -> None:
    server.admit("w0")
    (peer,) = server._peers.values()
    server._connected(peer, 70)
    server._connected(peer, 71)
    assert server._by_descriptor == {71: peer}
    assert peer.descriptor == 71


def test_a_greeting_that_is_no_hello_is_no_message(server: Server, connect: Callable[..., Connection]) -> None:
    connection = connect("w0", server.admit("w0"))
    greet(server, connection, "w0")
    connection.socket.send_multipart([encode_message(Beat()), connection.link.pack([encode_message(Bye())])])
    assert [type(message) for _, message in hear(server, 1)] == [Bye]
    connection.socket.send_multipart([encode_message(Beat())])
    connection.send([encode_message(Bye())])
    assert [type(message) for _, message in hear(server, 1)] == [Bye]


def test_messages_of_a_worker_that_is_forgotten_are_passed_over(
    server: Server, connect: Callable[..., Connection]
) -> None:
    connections = {name: connect(name, server.admit(name)) for name in ("w0", "w1")}
    for name, connection in connections.items():
        greet(server, connection, name)
    server.forget("w0")
    connections["w0"].send([encode_message(Beat())])
    connections["w1"].send([encode_message(Beat())])
    assert hear(server, 1) == [("w1", Beat())]
    assert settle(server, 3) == []


# -- an agent's connection -------------------------------------------------------------------------------------------


def test_a_worker_is_known_by_what_only_it_can_know() -> None:
    first, second = identity_of(b"secret one"), identity_of(b"secret two")
    assert first != second
    assert first == identity_of(b"secret one")
    assert len(first) == 32
    assert b"secret" not in first


def test_an_agent_keeps_all_that_it_sends_and_comes_back_soon(
    server: Server, connect: Callable[..., Connection]
) -> None:
    keys = server.admit("w0")
    made = connect("w0", keys).socket
    assert made.identity == identity_of(keys[1])
    assert (made.linger, made.sndhwm, made.rcvhwm) == (0, 0, 0)
    assert (made.reconnect_ivl, made.reconnect_ivl_max) == (50, 2000)


def test_a_handshake_is_told_once(server: Server, connect: Callable[..., Connection]) -> None:
    connection = connect("w0", server.admit("w0"))
    greet(server, connection, "w0")
    assert connection.reconnected() is False


def test_a_configuration_survives_its_way() -> None:
    config = AgentConfig("w0", "tcp://x:1", b"s", b"p", b"k", "f", "p", True, 3.5, "tcp://y:2", "m")
    assert AgentConfig.decode(config.encode()) == config
