"""A parameter server's answers, one conversation at a time, and when it saves; without a network in between."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from cargobike.core.errors import AuthenticationError, ConnectionLostError
from cargobike.training.parameter_server import serving
from cargobike.training.parameter_server.codecs import memory_of
from cargobike.training.parameter_server.messages import (
    Ask,
    Bye,
    Counts,
    Declare,
    Hello,
    Parameters,
    Pull,
    Push,
    Pushed,
    Refused,
    Rule,
    TensorSpec,
    Terms,
    decode_reply,
    encode,
)
from cargobike.training.parameter_server.serving import Server
from cargobike.training.parameter_server.shard import RefusedError
from cargobike.training.parameter_server.shard_file import load_shard, save_shard

SECRET = bytes(range(32))
DENSE = TensorSpec("w", (2,))
TABLE = TensorSpec("table", (2, 1), by_rows=True)
DECLARE = Declare((DENSE, TABLE), Rule(lr=1.0), Terms())
FIRST = torch.tensor([1.0, 2.0, 10.0, 20.0])


class Channel:
    """A connection over which some requests have come; keeps what is answered."""

    peer = "a test"

    def __init__(self, *requests: tuple[Any, list[torch.Tensor]] | Exception) -> None:
        self.requests = list(requests)
        self.body = b""
        self.replies: list[tuple[Any, list[float]]] = []
        self.calls: list[str] = []

    def wait_in_kernel(self, timeout_s: float | None) -> None:
        assert timeout_s is None
        self.calls.append("wait")

    def receive_header(self) -> tuple[bytes, int]:
        request = self.requests.pop(0)
        if isinstance(request, Exception):
            raise request
        self.body = b"".join(bytes(memory_of(tensor)) for tensor in request[1])
        return encode(request[0]), len(self.body)

    def read_into(self, target: memoryview) -> None:
        target[:] = self.body[: len(target)]

    def send(self, header: bytes, body: Any = ()) -> int:
        numbers = [float(x) for part in body for x in torch.frombuffer(bytearray(part), dtype=torch.float32)]
        self.replies.append((decode_reply(header), numbers))
        return 0

    def shut(self) -> None:
        self.calls.append("shut")

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(SECRET)
    yield made
    made.stop()


def talk(server: Server, *requests: Any) -> list[tuple[Any, list[float]]]:
    """Serve one conversation to its end, and return the answers with their numbers."""
    channel: Any = Channel(*((r if isinstance(r, tuple | Exception) else (r, [])) for r in (*requests, Bye())))
    server._channels.add(channel)
    server._serve(channel)
    assert channel.calls == ["wait", "close"]
    assert channel not in server._channels
    assert channel.requests == [], "the conversation went on to its end"
    return list(channel.replies)


# -- answers ---------------------------------------------------------------------------------------------------------


def test_a_worker_declares_pushes_and_pulls(server: Server) -> None:
    gradient = [torch.ones(2), torch.tensor([1]), torch.tensor([[5.0]])]
    replies = talk(
        server,
        Hello("a", 3),
        Ask(),
        (DECLARE, [FIRST]),
        Ask(),
        Pull(rows=(None,)),
        (Push(0, 0, rows=(1,)), gradient),
        (Pull(rows=(1,)), [torch.tensor([1])]),
        (Push(1, 1, rows=(1,), pull=Pull(rows=(None,))), gradient),
    )
    assert replies == [
        (Counts(False, 0), []),
        (Counts(False, 0), []),
        (Counts(True, 0), []),
        (Counts(True, 0), []),
        (Parameters(0), [1, 2, 10, 20]),
        (Pushed(True, 1, 0), []),
        (Parameters(1), [0, 1, 15]),
        (Pushed(True, 2, 0), [-1, 0, 10, 10]),
    ]
    assert server.shard is not None
    assert {name: (w.rank, w.connections) for name, w in server.shard.workers.items()} == {"a": (3, 0)}


def test_a_worker_that_is_there_counts_once_and_leaves_at_its_end(server: Server) -> None:
    talk(server, Hello("a", 0), (DECLARE, [FIRST]))
    shard = server.shard
    assert shard is not None
    assert shard.workers == {}, "it has asked for no parameters"
    seen: list[int] = []
    channel: Any = Channel((Hello("b", 1), []), (Pull(rows=(0,)), []), (Pull(rows=(0,)), []), (Bye(), []))
    header = channel.receive_header

    def watched() -> Any:
        seen.append(shard.workers["b"].connections if "b" in shard.workers else 0)
        return header()

    channel.receive_header = watched
    server._serve(channel)
    assert seen == [0, 0, 1, 1]
    assert shard.workers["b"].connections == 0


def test_a_worker_that_is_ahead_waits_for_the_others(server: Server) -> None:
    talk(server, (Declare((DENSE,), Rule(), Terms(staleness=0, on_stale="wait")), [FIRST[:2]]))
    assert server.shard is not None
    server.shard.enter("b", 1)
    replies = talk(server, Hello("a", 0), Pull(), (Push(0, 0), [torch.ones(2)]), Pull(timeout_s=0.01))
    assert [type(reply) for reply, _ in replies] == [Counts, Parameters, Pushed, Refused]
    assert replies[-1][0].reason == "waited"


def test_before_anything_is_declared_there_is_nothing_to_pull_or_push(server: Server) -> None:
    replies = talk(server, Hello("a", 0), Pull(), (Push(0, 0), [torch.ones(2)]))
    assert [reply.reason for reply, _ in replies[1:]] == ["undeclared", "undeclared"]
    assert "no parameters have been declared" in replies[1][0].message


def test_another_worker_must_mean_the_same_parameters(server: Server) -> None:
    other = msgspec.structs.replace(DECLARE, tensors=(TensorSpec("w", (3,)), TABLE, TensorSpec("b", (1,))))
    turned = msgspec.structs.replace(DECLARE, tensors=(TABLE, DENSE))
    many = msgspec.structs.replace(DECLARE, tensors=tuple(TensorSpec(f"p{n}", (1,)) for n in range(9)))
    replies = talk(
        server,
        (DECLARE, [FIRST]),
        (DECLARE, [FIRST + 1]),
        (other, [FIRST]),
        (turned, [FIRST]),
        (many, [FIRST]),
        Pull(rows=(None,)),
    )
    same, different, order, long, (parameters, numbers) = [*(reply for reply, _ in replies[1:-1]), replies[-1]]
    assert same == Counts(True, 0)
    assert different == Refused(
        "different",
        "this server holds other parameters than the worker's model has "
        "(w: (2,) here, (3,) in the worker, b: None here, (1,) in the worker)",
    )
    assert order.message.endswith("(in another order)")
    assert long.message.count("in the worker") == 5
    assert (parameters, numbers) == (Parameters(0), [1, 2, 10, 20]), "the first that was declared counts"


def test_numbers_that_do_not_fit_are_refused_and_the_conversation_goes_on(server: Server) -> None:
    replies = talk(
        server,
        Hello("a", 0),
        (DECLARE, [FIRST[:3]]),
        (DECLARE, [FIRST]),
        (Push(0, 0, rows=(1,)), [torch.ones(1)]),
        (Push(0, 0, rows=(1,)), [torch.ones(2), torch.tensor([7]), torch.ones(1)]),
        Ask(),
    )
    assert [reply.reason for reply, _ in (replies[1], *replies[3:5])] == ["malformed"] * 3
    assert all("\n" not in reply.message for reply, _ in (replies[1], *replies[3:5]))
    assert replies[-1][0] == Counts(True, 0)


@pytest.mark.parametrize("error", [ValueError("two\nlines"), IndexError("two\nlines"), RuntimeError("two\nlines")])
def test_an_error_of_the_numbers_is_told_in_one_line(
    server: Server, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Counts:
        raise error

    monkeypatch.setattr(server, "declare", fail)
    assert talk(server, (DECLARE, [FIRST])) == [(Refused("malformed", "two"), [])]


# -- ends of conversations -------------------------------------------------------------------------------------------


def end(server: Server, error: Exception) -> None:
    channel: Any = Channel(error)
    server._serve(channel)
    assert channel.calls == ["wait", "close"]


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (AuthenticationError("no"), logging.WARNING),
        (ConnectionLostError("gone"), logging.DEBUG),
        (OSError("gone"), logging.DEBUG),
        (msgspec.DecodeError("nonsense"), logging.DEBUG),
        (ZeroDivisionError("a bug"), logging.ERROR),
    ],
)
def test_what_ends_a_conversation_is_told_as_loudly_as_it_deserves(
    server: Server, error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger=serving.__name__):
        end(server, error)
    assert [record.levelno for record in caplog.records] == [level]
    assert "a test" in caplog.text


def test_a_body_that_no_worker_would_send_ends_the_conversation(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    lengths = iter([(1 << 40) + 1, 1 << 40])
    channel: Any = Channel()
    channel.receive_header = lambda: (encode(Bye()), next(lengths))
    with caplog.at_level(logging.DEBUG, logger=serving.__name__):
        server._serve(channel)
    assert "is not one of ours" in caplog.text
    session: Any = serving._Session(server, channel)
    asked: list[int] = []
    session._inbox.receive = lambda _, length: asked.append(length)
    assert session.answer_one() is False
    assert asked == [1 << 40]


# -- starting, stopping, saving --------------------------------------------------------------------------------------


def test_a_server_listens_from_start_to_stop() -> None:
    with Server(SECRET) as server:
        host, _, port = server.address.rpartition(":")
        assert host.endswith("127.0.0.1")
        socket.create_connection(("127.0.0.1", int(port)), timeout=10).close()
        threads = list(server._threads)
        assert [(thread.is_alive(), thread.daemon) for thread in threads] == [(True, True)] * 2
        channel: Any = Channel()
        server._channels.add(channel)
    assert channel.calls == ["shut"]
    assert not any(thread.is_alive() for thread in threads)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=10)


def test_a_server_that_never_started_gives_its_port_back() -> None:
    server = Server(SECRET)
    port = int(server.address.rpartition(":")[2])
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_each_worker_is_served_in_a_thread_of_its_own(server: Server) -> None:
    channel: Any = Channel((Ask(), []), (Bye(), []))
    was_closed = threading.Event()
    channel.close = was_closed.set
    started: list[threading.Thread] = []
    is_known: list[bool] = []

    def begin(_: float | None) -> None:
        started.append(threading.current_thread())
        is_known.append(channel in server._channels)

    channel.wait_in_kernel = begin
    server._admit(channel)
    assert was_closed.wait(30)
    assert is_known == [True], "so that it can be ended with the server"
    assert channel.replies == [(Counts(False, 0), [])]
    assert started[0] is not threading.current_thread()
    assert started[0].daemon
    started[0].join(30)
    assert server._channels == set()


def test_a_shard_is_saved_when_it_has_changed_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, saves = tmp_path / "shard.bin", list[int]()

    def counted(shard: Any, where: Path) -> int:
        assert where == path
        saves.append(shard.version)
        return save_shard(shard, where)

    monkeypatch.setattr(serving, "save_shard", counted)
    server = Server(SECRET, checkpoint=path)
    server._save()
    assert saves == [], "there is nothing to save"
    talk(server, Hello("a", 0), (DECLARE, [FIRST]))
    server._save()
    server._save()
    assert saves == [0]
    talk(server, Hello("a", 0), (Push(0, 0, rows=(0,)), [torch.ones(2)]))

    def refuse(shard: Any, where: Path) -> int:
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(serving, "save_shard", refuse)
        server._save()
    assert "could not be saved" in caplog.text
    server.stop()
    assert saves == [0, 1], "what could not be saved is tried again"
    restored = Server(SECRET, checkpoint=path)
    restored.stop()
    assert restored.shard is not None
    assert (restored.shard.version, restored.shard.counts().restored) == (1, 1)
    assert load_shard(path) is not None


def test_it_is_saved_in_between_as_often_as_was_asked_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    saves: list[int] = []

    def wait(timeout_s: float) -> bool:
        waits.append(timeout_s)
        return len(waits) == 3

    monkeypatch.setattr(server._stopping, "wait", wait)
    monkeypatch.setattr(server, "_save", lambda: saves.append(len(waits)))
    server._every_s = 7.0
    server._save_regularly()
    assert (waits, saves) == ([7.0] * 3, [1, 2])
    monkeypatch.undo()
    other = Server(SECRET, checkpoint_every_s="2m")
    other.stop()
    assert other._every_s == 120.0


def test_a_refusal_is_an_error_for_the_one_who_declares(server: Server) -> None:
    body = torch.frombuffer(bytearray(memory_of(FIRST)), dtype=torch.uint8)
    assert server.declare(DECLARE, body) == Counts(True, 0)
    with pytest.raises(RefusedError, match="in another order"):
        server.declare(msgspec.structs.replace(DECLARE, tensors=(TABLE, DENSE)), body)


class Gang:
    """The gang of a server that is to stop after some rounds."""

    address = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        self.gang = self
        self.secret = SECRET
        self.checkpoints_root = folder
        self.options = {"checkpoint_every_s": 3.0}
        self.published: dict[str, bytes] = {}
        self.rounds = 0

    def publish(self, key: str, value: bytes) -> None:
        self.published[key] = value

    @property
    def should_stop(self) -> bool:
        self.rounds += 1
        if self.rounds == 1:
            port = int(self.published["ps-address"].rpartition(b":")[2])
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
        return self.rounds > 2


def test_a_server_of_a_gang_tells_its_address_and_serves_until_it_is_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Gang(tmp_path / "checkpoints")
    made: list[Server] = []
    init = Server.__init__

    def noted(server: Server, *args: Any, **options: Any) -> None:
        made.append(server)
        init(server, *args, **options)

    monkeypatch.setattr(Server, "__init__", noted)
    monkeypatch.setattr(serving, "current", lambda: here)
    serving.serve()
    (server,) = made
    assert here.rounds == 3
    assert here.published == {"ps-address": server.address.encode()}
    assert (server._checkpoint, server._every_s) == (here.checkpoints_root / "shard.bin", 3.0)
    assert server._stopping.is_set()
