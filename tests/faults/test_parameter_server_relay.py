"""Somebody sits between a worker and a parameter server: what they change, repeat or invent reaches no weight."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
import torch
from torch import nn

import cargobike.torch
from cargobike.errors import AuthenticationError, ConnectionLostError
from cargobike.training.wire import connection
from cargobike.training.wire.sealing import Suite
from support.relay import TAG, Direction, Frame, Relay, Tamper, pass_on

SECRET = b"a secret of thirty-two bytes ..."
STEPS = 3

FIRST_STEP = 3
"""What a worker sends: hello, declare, pull, then a push and pull for each step. Each is answered by one frame."""


def model_of(width: int = 3) -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(width, 2)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def join(address: str, model: nn.Module, **options: Any) -> cargobike.torch.ParameterClient:
    return cargobike.torch.parameter_client(
        model, sgd(model), servers=[address], secret=SECRET, **{"timeout_s": 60, **options}
    )


def backward(model: nn.Module, step: int) -> None:
    model(torch.full((4, model.weight.shape[1]), 0.1 * step)).square().sum().backward()


def expected(width: int = 3) -> torch.Tensor:
    model = model_of(width)
    optimizer = sgd(model)
    for step in range(STEPS):
        backward(model, step)
        optimizer.step()
        optimizer.zero_grad()
    return model.weight.detach()


def train_through(tamper: Tamper, width: int = 3) -> Relay:
    """Train through a relay and check that exactly the right thing came out."""
    model = model_of(width)
    with (
        cargobike.torch.ParameterServer(SECRET) as server,
        Relay(server.address, tamper) as relay,
        join(relay.address, model) as client,
    ):
        for step in range(STEPS):
            backward(model, step)
            assert client.step()
        counts = client.counts()[0]
    assert (counts.version, counts.applied) == (STEPS, STEPS)
    torch.testing.assert_close(model.weight, expected(width))
    return relay


def positions(frame: Frame) -> list[int]:
    """The first and the last byte of each part and of its tag."""
    found, begin = [], 0
    for part in frame.parts:
        end = begin + len(part)
        found += [begin, end - TAG - 1, end - TAG, end - 1]
        begin = end
    return sorted(set(found))


def test_a_relay_that_changes_nothing_is_a_wire() -> None:
    relay = train_through(pass_on)
    assert relay.connections == 1
    assert len(relay.seen) >= 2 * (FIRST_STEP + STEPS)


@pytest.mark.parametrize("number", range(FIRST_STEP + 1))
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_flipped_bit_anywhere_is_noticed(direction: Direction, number: int) -> None:
    """Up to four connections of each run are spoilt, each at another position, until none is left."""
    todo: list[int] | None = None
    spoilt = size = 0

    def tamper(frame: Frame) -> list[tuple[Direction, bytes]]:
        nonlocal todo, spoilt, size
        if (frame.direction, frame.number) != (direction, number) or frame.connection > 3:
            return pass_on(frame)
        if todo is None:
            todo, size = positions(frame), len(frame.data)
        if not todo or len(frame.data) != size:
            return pass_on(frame)
        spoilt += 1
        return [(direction, frame.flipped(todo.pop()))]

    while todo != []:
        before = spoilt
        relay = train_through(tamper)
        assert relay.connections == 1 + spoilt - before > 1
    assert spoilt >= 8


def once(change: Tamper, direction: Direction, number: int) -> Tamper:
    """Do something to one frame of the first connection, and pass on everything else."""

    def tamper(frame: Frame) -> list[tuple[Direction, bytes]]:
        at = (frame.connection, frame.direction, frame.number)
        return change(frame) if at == (0, direction, number) else pass_on(frame)

    return tamper


def dropped_piece(frame: Frame) -> list[tuple[Direction, bytes]]:
    return [(frame.direction, b"".join(frame.parts[:2] + frame.parts[3:]))]


def swapped_pieces(frame: Frame) -> list[tuple[Direction, bytes]]:
    lengths, header, first, second, *rest = frame.parts
    return [(frame.direction, b"".join([lengths, header, second, first, *rest]))]


def repeated_piece(frame: Frame) -> list[tuple[Direction, bytes]]:
    lengths, header, first, _, *rest = frame.parts
    return [(frame.direction, b"".join([lengths, header, first, first, *rest]))]


@pytest.mark.parametrize("change", [dropped_piece, swapped_pieces, repeated_piece])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_pieces_of_a_body_come_in_order_or_not_at_all(direction: Direction, change: Tamper) -> None:
    relay = train_through(once(change, direction, FIRST_STEP), width=100_000)
    assert relay.connections == 2


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_frame_that_is_sent_twice_counts_once(direction: Direction) -> None:
    def twice(frame: Frame) -> list[tuple[Direction, bytes]]:
        return 2 * pass_on(frame)

    train_through(once(twice, direction, FIRST_STEP))


@pytest.mark.parametrize("direction", ["up", "down"])
def test_an_old_frame_does_not_pass_for_a_new_one(direction: Direction) -> None:
    kept: list[bytes] = []

    def tamper(frame: Frame) -> list[tuple[Direction, bytes]]:
        if (frame.connection, frame.direction) == (0, direction):
            kept.append(frame.data)
            if frame.number == FIRST_STEP + 1:
                return [(direction, kept[FIRST_STEP])]
        return pass_on(frame)

    assert train_through(tamper).connections == 2


def test_a_request_does_not_pass_for_its_own_answer() -> None:
    def reflect(frame: Frame) -> list[tuple[Direction, bytes]]:
        return [("down", frame.data)]

    assert train_through(once(reflect, "up", FIRST_STEP)).connections == 2


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_frame_of_another_connection_does_not_fit(direction: Direction) -> None:
    """The second worker gets the first one's frames, of the same number and with the same content."""
    others: dict[int, bytes] = {}

    def tamper(frame: Frame) -> list[tuple[Direction, bytes]]:
        if frame.direction == direction:
            if frame.connection == 0:
                others[frame.number] = frame.data
            elif frame.connection == 1 and frame.number == FIRST_STEP:
                return [(direction, others[FIRST_STEP])]
        return pass_on(frame)

    first, second = model_of(), model_of()
    with cargobike.torch.ParameterServer(SECRET) as server, Relay(server.address, tamper) as relay:
        with join(relay.address, first) as one:
            backward(first, 1)
            one.step()
        with join(relay.address, second) as two:
            backward(second, 1)
            two.step()
            counts = two.counts()[0]
        assert (counts.applied, counts.version, relay.connections) == (2, 2, 3)


@pytest.mark.parametrize(
    ("direction", "error"), [("down", AuthenticationError), ("up", ConnectionLostError)], ids=["down", "up"]
)
def test_who_spoils_every_connection_is_named_and_changes_no_weight(
    direction: Direction, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    def tamper(frame: Frame) -> list[tuple[Direction, bytes]]:
        if spoils and frame.direction == direction and len(frame.parts) > 2:
            return [(direction, frame.flipped(len(frame.data) - TAG - 1))]
        return pass_on(frame)

    spoils = False
    model = model_of()
    with cargobike.torch.ParameterServer(SECRET) as server, Relay(server.address, tamper) as relay:
        client = join(relay.address, model)
        before, spoils = model.weight.detach().clone(), True
        backward(model, 1)
        with pytest.raises(error, match=rf"parameter server 0 at {relay.address} broke 5 times in a row.*change"):
            client.step()
        assert torch.equal(model.weight, before)
        assert server.shard is not None
        assert server.shard.version == (1 if direction == "down" else 0), "what came whole was applied, once"
    if direction == "up":
        assert "a frame was changed, repeated, moved or left out" in caplog.text


@pytest.fixture(params=["tags", "encrypted"])
def is_encrypted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "encrypted":
        monkeypatch.setattr(connection, "is_loopback", lambda _: False)
    return bool(request.param == "encrypted")


def test_who_listens_on_a_network_reads_nothing(is_encrypted: bool) -> None:
    model = model_of(100)
    weights = model.weight.detach().numpy().tobytes()
    with (
        cargobike.torch.ParameterServer(SECRET) as server,
        Relay(server.address, is_blind=True) as relay,
        join(relay.address, model) as client,
    ):
        client.pull()
    data = {way: b"".join(f.data for f in relay.seen if f.direction == way) for way in ("up", "down")}
    assert [weights in data[way] for way in ("up", "down")] == [not is_encrypted] * 2
    assert (b"declare" in data["up"]) is not is_encrypted
    assert SECRET not in data["up"] + data["down"]


def test_a_flipped_bit_in_an_encrypted_connection_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "is_loopback", lambda _: False)

    def tamper(frame: Frame) -> list[tuple[Direction, bytes]]:
        is_chosen = frame.connection in (0, 1) and frame.direction == ("up", "down")[frame.connection]
        return [(frame.direction, frame.flipped(len(frame.data) // 2))] if is_chosen else pass_on(frame)

    model = model_of()
    with (
        cargobike.torch.ParameterServer(SECRET) as server,
        Relay(server.address, tamper, is_blind=True) as relay,
        join(relay.address, model) as client,
    ):
        for step in range(STEPS):
            backward(model, step)
            assert client.step()
        assert relay.connections == 3
    torch.testing.assert_close(model.weight, expected())


def test_a_relay_cannot_talk_two_ends_into_less_protection() -> None:
    """A greeting that offers less than the server does, to a worker that would be content, does not fit the proofs."""
    with cargobike.torch.ParameterServer(SECRET) as server, socket.create_server(("127.0.0.1", 0)) as listener:
        address = "{}:{}".format(*listener.getsockname())

        def relay() -> None:
            worker, _ = listener.accept()
            host, _, port = server.address.rpartition(":")
            with worker, socket.create_connection((host, int(port)), timeout=30) as there:
                greeting = there.recv(81)
                worker.sendall(greeting[:16] + bytes([Suite.HMAC_TAGS]) + greeting[17:])
                there.sendall(worker.recv(113))
                worker.sendall(there.recv(33))

        thread = threading.Thread(target=relay)
        thread.start()
        with pytest.raises(AuthenticationError, match="does not accept our secret"):
            join(address, model_of())
        thread.join(30)


def test_a_process_of_our_own_user_that_took_the_name_is_a_wire_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = "{}:{}".format(*probe.getsockname())
    flip = once(lambda frame: [(frame.direction, frame.flipped(len(frame.data) - TAG - 1))], "down", FIRST_STEP)
    model = model_of()
    with (
        Relay(address, flip, name=f"\0cargobike {address}") as relay,
        cargobike.torch.ParameterServer(SECRET, port=int(address.rpartition(":")[2])),
        join(address, model) as client,
    ):
        for step in range(STEPS):
            backward(model, step)
            assert client.step()
        assert relay.connections == 2
    torch.testing.assert_close(model.weight, expected())
