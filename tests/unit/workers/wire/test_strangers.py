"""Connections that prove nothing make room: the oldest first, and never one of a worker."""

from __future__ import annotations

import logging
import os
import resource
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from cargobike.core.errors import EngineError
from cargobike.core.running.hosting import Listening
from cargobike.experiments.trial.messages import decode_from_worker
from cargobike.workers.wire.connection import AgentConfig, Connection
from cargobike.workers.wire.messages import Beat, Hello, encode_message
from cargobike.workers.wire.server import WireServer
from cargobike.workers.wire.strangers import (
    HANDSHAKE_S,
    MOST_STRANGERS,
    Crowd,
    Doorkeeper,
    _is_tcp,
    closed_connection,
)
from support.watching import wait_for


def test_the_oldest_make_room() -> None:
    crowd = Crowd(3)
    for fd in (10, 11, 12):
        crowd.accepted(fd, 0.0)
        assert crowd.too_many(0.0, known=(), expected=0) == []
    crowd.accepted(13, 1.0)
    assert crowd.too_many(1.0, known=(), expected=0) == [10]
    crowd.accepted(14, 1.0)
    crowd.closed(12)
    assert crowd.too_many(1.0, known=(), expected=0) == []


def test_a_number_that_is_used_again_is_a_new_connection() -> None:
    crowd = Crowd(2)
    for fd in (10, 11, 10, 12):
        crowd.accepted(fd, 0.0)
    assert crowd.too_many(0.0, known=(), expected=0) == [11]


def test_workers_do_not_make_room_and_those_to_come_have_a_place() -> None:
    crowd = Crowd(2)
    for fd in range(10, 16):
        crowd.accepted(fd, 0.0)
    assert crowd.too_many(0.0, known=(), expected=4) == []
    assert crowd.too_many(0.0, known={10, 12}, expected=1) == [11]


def test_who_is_through_its_handshake_is_not_counted() -> None:
    crowd = Crowd(2)
    for fd in (10, 11):
        crowd.accepted(fd, 0.0)
    for fd in (12, 13):
        crowd.accepted(fd, 2 * HANDSHAKE_S)
    assert crowd.too_many(2 * HANDSHAKE_S, known=(), expected=0) == []


def test_every_second_at_the_door_counts() -> None:
    crowd = Crowd(1)
    crowd.accepted(10, 0.0)
    crowd.accepted(11, 0.0)
    assert crowd.too_many(HANDSHAKE_S + 1.9, known=(), expected=0) == [10]
    crowd.accepted(12, 1.0)
    assert crowd.too_many(HANDSHAKE_S + 2.0, known=(), expected=0) == [], "the other is through its handshake"


def test_as_many_as_were_asked_for_may_stay() -> None:
    crowd = Crowd(2)
    for fd in range(10, 20):
        crowd.accepted(fd, 0.0)
    assert crowd.too_many(0.0, known=range(10, 15), expected=0) == [15, 16, 17]
    assert crowd.too_many(0.0, known=range(10, 15), expected=0) == [], "they were sent away"
    crowd.closed(99)


# -- the one at the door, without its thread -------------------------------------------------------------------------


@pytest.fixture
def router() -> Iterator[zmq.Socket[bytes]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.linger = 0
    yield router
    router.close(0)
    context.term()


class Monitor:
    """Tells some events, one by one."""

    def __init__(self, *events: tuple[int, int] | Exception) -> None:
        self.events = list(events)
        self.is_closed = False

    def recv_multipart(self) -> list[bytes]:
        event = self.events.pop(0)
        if isinstance(event, Exception):
            raise event
        return [struct.pack("=Hi", *event), b"tcp://127.0.0.1:1"]

    def close(self, linger: int) -> None:
        assert linger == 0
        self.is_closed = True


def doorkeeper(router: zmq.Socket[bytes], *events: tuple[int, int] | Exception, expected: int = 0) -> Doorkeeper:
    made = Doorkeeper(router, known=lambda: (), expected=lambda: expected)
    made._monitor.close(0)
    made._monitor = Monitor(*events)  # type: ignore[assignment]
    return made


def open_files() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_a_handshake_has_a_deadline_and_many_may_wait_for_it(router: zmq.Socket[bytes]) -> None:
    keeper = Doorkeeper(router, known=lambda: (), expected=lambda: 0)
    assert router.getsockopt(zmq.HANDSHAKE_IVL) == 10_000
    assert router.getsockopt(zmq.BACKLOG) == 512
    router.disable_monitor()
    keeper.close()


@pytest.mark.parametrize(("limit", "most"), [(-1, 128), (16, 8), (64, 8), (512, 64), (1024, 128), (1 << 20, 128)])
def test_at_most_an_eighth_of_the_descriptors_is_for_strangers(
    router: zmq.Socket[bytes], monkeypatch: pytest.MonkeyPatch, limit: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    keeper = doorkeeper(router)
    assert keeper._crowd._most == most
    keeper.close()


def test_closings_are_told_and_nothing_stays_open(router: zmq.Socket[bytes]) -> None:
    before = open_files()
    keeper = doorkeeper(router, (zmq.EVENT_DISCONNECTED, 33), (zmq.EVENT_MONITOR_STOPPED, 0))
    monitor: Any = keeper._monitor
    closings = keeper.closings()
    assert (closings.linger, closings.sndhwm, closings.rcvhwm) == (0, 0, 0)
    keeper.open(1)
    assert keeper._thread.daemon
    keeper.close()
    assert not keeper._thread.is_alive()
    assert closings.poll(10_000)
    assert closed_connection(closings.recv()) == 33
    assert keeper._tell is not None
    assert (monitor.is_closed, keeper._tell.closed, monitor.events) == (True, True, [])
    closings.close(0)
    wait_for(lambda: len(open_files()) <= len(before) + 2, "all to be closed")  # ZeroMQ keeps two for its sockets
    for fd in (keeper._hand, keeper._null):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_one_that_was_never_opened_puts_everything_down(router: zmq.Socket[bytes]) -> None:
    keeper: Any = doorkeeper(router)
    keeper.close()
    assert keeper._monitor.is_closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(keeper._hand)


def test_those_that_leave_do_not_count(router: zmq.Socket[bytes]) -> None:
    accepted, gone = zmq.EVENT_ACCEPTED, zmq.EVENT_DISCONNECTED
    keeper: Any = doorkeeper(router, (accepted, 51), (gone, 51), (accepted, 52), (accepted, 53), expected=1)
    keeper._crowd = Crowd(0)
    sent_away: list[int] = []
    keeper._send_away = sent_away.append
    assert [keeper._hear() for _ in range(4)] == [True] * 4
    assert sent_away == [52]
    keeper.close()


@pytest.mark.parametrize(("error", "is_told"), [(zmq.ContextTerminated(), False), (zmq.ZMQError(zmq.ENOTSOCK), True)])
def test_the_watch_ends_with_its_sockets(
    router: zmq.Socket[bytes], error: Exception, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    keeper: Any = doorkeeper(router, (zmq.EVENT_DISCONNECTED, 3), error)
    keeper._watch()
    assert keeper._monitor.is_closed
    assert ("not watched any more" in caplog.text) is is_told


def test_only_connections_to_our_port_are_closed(router: zmq.Socket[bytes], caplog: pytest.LogCaptureFixture) -> None:
    keeper = doorkeeper(router, (zmq.EVENT_MONITOR_STOPPED, 0))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        keeper._port = server.getsockname()[1]
        pairs = []
        for listening in (server, server, server, other):
            near = socket.create_connection(listening.getsockname(), timeout=10)
            pairs.append((near, listening.accept()[0]))
        beside = socket.socketpair()
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagram.bind(("127.0.0.1", keeper._port))
        files = open_files()
        for fd in (*(theirs.fileno() for _, theirs in pairs), beside[0].fileno(), datagram.fileno(), 9999):
            keeper._send_away(fd)
        assert open_files() == files, "no descriptor is used up"
        assert os.fstat(keeper._hand) == os.fstat(keeper._null), "the hand is empty again"
        assert not os.get_inheritable(keeper._hand)
        assert [_is_closed(near) for near, _ in pairs] == [True, True, True, False]
        beside[0].send(b"x")
        assert beside[1].recv(1) == b"x"
        for one in (*(end for pair in pairs for end in pair), *beside, datagram):
            one.close()
    assert keeper._sent_away == 3
    assert caplog.text.count("do not say who they are") == 1
    with caplog.at_level(logging.INFO):
        keeper._watch()
    assert "3 connections to port" in caplog.text


def test_a_quiet_door_says_nothing(router: zmq.Socket[bytes], caplog: pytest.LogCaptureFixture) -> None:
    keeper = doorkeeper(router, (zmq.EVENT_MONITOR_STOPPED, 0))
    with caplog.at_level(logging.INFO):
        keeper._watch()
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("family", "kind", "is_tcp"),
    [
        (socket.AF_INET, socket.SOCK_STREAM, True),
        (socket.AF_INET6, socket.SOCK_STREAM, True),
        (socket.AF_UNIX, socket.SOCK_STREAM, False),
        (socket.AF_INET, socket.SOCK_DGRAM, False),
    ],
)
def test_only_tcp_is_tcp(family: socket.AddressFamily, kind: socket.SocketKind, is_tcp: bool) -> None:
    with socket.socket(family, kind) as one:
        assert _is_tcp(one) is is_tcp


# -- a server with its doorkeeper --------------------------------------------------------------------------------------


class Running:
    """A server that listens in a thread, as a driver's loop does."""

    def __init__(self) -> None:
        self.server: WireServer[Any] = WireServer(decode_from_worker)
        self.heard: list[str] = []
        self.lost: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while not self._is_over.is_set():
            self.server.poll(20)
            messages, lost = self.server.receive()
            self.heard += [worker for worker, _ in messages]
            self.lost += lost

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self.server.close()


@pytest.fixture
def running() -> Iterator[Running]:
    running = Running()
    yield running
    running.close()


def _join(running: Running, worker: str) -> Connection:
    public, secret = running.server.admit(worker)
    config = AgentConfig(worker, running.server.address, running.server.server_key, public, secret, "", "", False)
    connection = Connection(config)
    connection.socket.send_multipart([encode_message(Hello(worker, 1, "host", "3", "0")), connection.link.pack([])])
    return connection


def _is_closed(connection: socket.socket) -> bool:
    try:
        connection.setblocking(False)
        while connection.recv(1000):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def test_a_silent_crowd_is_closed_and_workers_stay_and_come(running: Running) -> None:
    first = _join(running, "w0")
    wait_for(lambda: running.heard == ["w0"], "the first worker")
    port = int(running.server.address.rsplit(":", 1)[1])
    crowd = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(3 * MOST_STRANGERS)]
    second = _join(running, "w1")
    try:
        wait_for(lambda: "w1" in running.heard, "the second worker")
        wait_for(lambda: sum(map(_is_closed, crowd)) >= 2 * MOST_STRANGERS - 1, "room")
        assert not _is_closed(crowd[-1])
        # One of the closings may be taken for a worker's that has the number since: it is heard all the same.
        for name, worker in (("w0", first), ("w1", second)):
            heard = running.heard.count(name)
            worker.send([encode_message(Beat())])
            wait_for(lambda: running.heard.count(name) > heard, f"{name} once more")  # noqa: B023 - called at once
    finally:
        for connection in crowd:
            connection.close()
        for worker in (first, second):
            worker.close(0)
    wait_for(lambda: {"w0", "w1"} <= set(running.lost), "the ends of both workers")


def test_the_port_for_files_has_a_doorkeeper_too(running: Running) -> None:
    router, address = running.server.open_router(Listening(), most_bytes=1000)
    port = int(address.rsplit(":", 1)[1])
    crowd = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(2 * MOST_STRANGERS)]
    try:
        wait_for(lambda: sum(map(_is_closed, crowd)) >= MOST_STRANGERS - 1, "room")
        assert not _is_closed(crowd[-1])
    finally:
        router.close(0)
        for connection in crowd:
            connection.close()


def test_a_port_for_files_that_is_taken_is_refused_in_words(running: Running) -> None:
    port = int(running.server.address.rsplit(":", 1)[1])
    with pytest.raises(EngineError, match=f"cannot listen on 127.0.0.1:{port} .*a port that is free"):
        running.server.open_router(Listening(port=port), most_bytes=1000)
