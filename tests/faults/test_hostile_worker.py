"""A worker that has a key and sends nonsense: it is ignored, and the driver goes on hearing the others."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import zmq

from cargobike.workers.wire.connection import AgentConfig, Connection
from cargobike.workers.wire.messages import Beat, Hello, WorkerMessage, decode_worker_message, encode_message
from cargobike.workers.wire.server import WireServer


@pytest.fixture
def server() -> Iterator[WireServer[WorkerMessage]]:
    server = WireServer(decode_worker_message)
    yield server
    server.close()


def connect(server: WireServer[WorkerMessage], worker: str) -> Connection:
    public, secret = server.admit(worker)
    config = AgentConfig(worker, server.address, server.server_key, public, secret, "", "", False)
    connection = Connection(config)
    hello = encode_message(Hello(worker, 1, "host", "3.11", "0"))
    connection.socket.send_multipart([hello, connection.link.pack([])])
    return connection


def hear(server: WireServer[WorkerMessage], count: int) -> list[tuple[str, WorkerMessage]]:
    heard: list[tuple[str, WorkerMessage]] = []
    deadline = time.monotonic() + 30
    while len(heard) < count:
        assert time.monotonic() < deadline, f"heard only {heard}"
        server.poll(100)
        heard += server.receive()[0]
    return heard


NONSENSE = [
    [b""],
    [b"x"],
    [b"", b""],
    [b"", b"noise"],
    [b"\xc1", b"\xc1"],
    [b"", b"a", b"b", b"c"],
    [b"", b"\x91" * 10_000],
    [b"", b"\x93\x09\x00\x91\x91\xa1\x80"],
]


@pytest.mark.parametrize("parts", NONSENSE)
def test_nonsense_is_ignored_and_others_are_heard(server: WireServer[WorkerMessage], parts: list[bytes]) -> None:
    bad, good = connect(server, "bad"), connect(server, "good")
    try:
        assert {name for name, _ in hear(server, 2)} == {"bad", "good"}
        for _ in range(3):
            bad.socket.send_multipart(parts)
        good.send([encode_message(Beat())])
        assert hear(server, 1) == [("good", Beat())]
        bad.socket.send_multipart(parts)
        bad.send([encode_message(Beat())])
        heard = [message for name, message in hear(server, 1) if name == "bad"]
        assert heard == [Beat()]
    finally:
        for connection in (bad, good):
            connection.close(0)


def test_parts_of_a_message_without_end_do_not_stop_the_driver(server: WireServer[WorkerMessage]) -> None:
    bad = connect(server, "bad")
    try:
        hear(server, 1)
        for _ in range(5):
            bad.socket.send(b"part", zmq.SNDMORE)
        assert not server.poll(200) or server.receive() == ([], [])
    finally:
        bad.close(0)
