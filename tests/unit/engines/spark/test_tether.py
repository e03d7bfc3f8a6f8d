"""The engine's end of its tethers: only workers with the key are heard, and their ends are told once."""

from __future__ import annotations

import hashlib
import hmac
import queue
import socket
import struct
from collections.abc import Iterator

import msgspec
import pytest

from cargobike.core.errors import EngineError
from cargobike.core.running.ending import Ending, EndKind
from cargobike.engines.spark.task import GO, LONGEST_FRAME, NONCE_BYTES, STOP
from cargobike.engines.spark.tether import MOST_STRANGERS, Farewell, Placed, TetherServer

PATIENCE_S = 30.0
PLACE = Placed(worker="w1", task="7.0", host="there", address="10.0.0.1", executor="3", pid=42, cpus=2)


class Owner:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.said: queue.Queue[tuple[object, ...]] = queue.Queue()
        self.answer = GO

    def placed(self, place: Placed) -> bytes:
        self.said.put(("placed", place))
        return self.answer

    def ended(self, worker: str, ending: Ending) -> None:
        self.said.put(("ended", worker, ending))

    def cut(self, worker: str, task: str) -> None:
        self.said.put(("cut", worker, task))

    def tick(self) -> None:
        pass

    def next(self) -> tuple[object, ...]:
        return self.said.get(timeout=PATIENCE_S)


class Worker:
    """A worker's end, byte by byte."""

    def __init__(self, server: TetherServer) -> None:
        self._key = server.key
        self.link = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        self.nonce = b""
        while len(self.nonce) < NONCE_BYTES:
            self.nonce += self.link.recv(NONCE_BYTES - len(self.nonce))

    def frame(self, message: msgspec.Struct | bytes, key: bytes | None = None) -> bytes:
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        proof = hmac.new(key or self._key, self.nonce + body, hashlib.sha256).digest()
        return struct.pack("!I", len(proof + body)) + proof + body

    def say(self, message: msgspec.Struct | bytes) -> None:
        self.link.sendall(self.frame(message))

    def introduce(self) -> None:
        self.say(PLACE)
        assert self.link.recv(1) == GO


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def server(owner: Owner) -> Iterator[TetherServer]:
    server = TetherServer("127.0.0.1", 0, owner)
    yield server
    server.close()


@pytest.fixture
def worker(server: TetherServer) -> Iterator[Worker]:
    worker = Worker(server)
    yield worker
    worker.link.close()


def test_a_worker_says_where_it_is_and_can_be_told_to_end(server: TetherServer, owner: Owner, worker: Worker) -> None:
    assert not server.pull("w1")
    worker.introduce()
    assert owner.next() == ("placed", PLACE)
    assert server.pull("w1")
    assert worker.link.recv(1) == STOP
    assert not server.pull("another")


def test_a_message_may_come_in_pieces(owner: Owner, worker: Worker) -> None:
    data = worker.frame(PLACE)
    for start in range(0, len(data), 7):
        worker.link.sendall(data[start : start + 7])
    assert owner.next() == ("placed", PLACE)


def test_a_goodbye_is_told_and_the_closing_after_it_is_not(server: TetherServer, owner: Owner, worker: Worker) -> None:
    ending = Ending(EndKind.CRASHED, "exited with code 3")
    worker.introduce()
    worker.say(Farewell(worker="w1", ending=ending))
    worker.link.close()
    assert [owner.next(), owner.next()] == [("placed", PLACE), ("ended", "w1", ending)]
    other = Worker(server)
    other.introduce()
    assert owner.next() == ("placed", PLACE), "nothing was told in between"
    other.link.close()


def test_a_closing_without_a_word_is_told(server: TetherServer, owner: Owner, worker: Worker) -> None:
    worker.introduce()
    worker.link.close()
    assert [owner.next(), owner.next()] == [("placed", PLACE), ("cut", "w1", "7.0")]
    assert not server.pull("w1")


def test_a_worker_that_is_not_wanted_is_told_so(server: TetherServer, owner: Owner, worker: Worker) -> None:
    owner.answer = b"N"
    worker.say(PLACE)
    assert worker.link.recv(1) == b"N"
    assert not server.pull("w1")


def test_who_does_not_know_the_key_is_not_heard(owner: Owner, worker: Worker) -> None:
    worker.link.sendall(worker.frame(PLACE, key=b"wrong" * 8))
    worker.introduce()
    assert owner.next() == ("placed", PLACE)
    assert owner.said.empty()


def test_what_was_overheard_on_another_line_proves_nothing(server: TetherServer, owner: Owner, worker: Worker) -> None:
    replayed = Worker(server)
    replayed.link.sendall(worker.frame(PLACE))
    replayed.link.shutdown(socket.SHUT_WR)
    assert replayed.link.recv(1) == b""
    assert owner.said.empty()
    replayed.link.close()


@pytest.mark.parametrize("size", [0, LONGEST_FRAME + 1, 2**32 - 1])
def test_sizes_that_are_none_of_ours_end_the_line(owner: Owner, worker: Worker, size: int) -> None:
    worker.link.sendall(struct.pack("!I", size) + b"x" * 64)
    assert worker.link.recv(1) == b""
    assert owner.said.empty()


def test_nonsense_with_the_right_proof_is_ignored(owner: Owner, worker: Worker) -> None:
    worker.say(b"{}")
    worker.say(b"\xff")
    worker.introduce()
    assert owner.next() == ("placed", PLACE)


def test_the_oldest_of_a_silent_crowd_makes_room_for_a_worker(server: TetherServer, owner: Owner) -> None:
    crowd = [Worker(server) for _ in range(MOST_STRANGERS)]
    late = Worker(server)
    late.introduce()
    assert owner.next() == ("placed", PLACE)
    assert crowd[0].link.recv(1) == b""
    for one in (*crowd, late):
        one.link.close()


def test_closing_ends_the_lines(owner: Owner) -> None:
    server = TetherServer("127.0.0.1", 0, owner)
    worker = Worker(server)
    worker.introduce()
    server.close()
    assert worker.link.recv(1) == b""
    worker.link.close()


def test_an_address_that_is_not_ours_is_said(owner: Owner) -> None:
    with pytest.raises(EngineError, match=r"cannot listen on 192\.0\.2\.1:any port .*SparkEngine\(address="):
        TetherServer("192.0.2.1", 0, owner)
