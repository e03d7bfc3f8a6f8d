"""The parameter server in one process: updates, staleness, rows, secrets, files."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import cargobike.torch
from cargobike import experiment
from cargobike.errors import AuthenticationError, InvalidInputError, ServerRefusedError, StoreError, WaitError
from cargobike.training.parameter_server.division import divide
from cargobike.training.parameter_server.messages import TensorSpec

SECRET = b"s" * 32


@pytest.fixture(params=["near", "far"])
def server(request: pytest.FixtureRequest) -> Iterator[cargobike.torch.ParameterServer]:
    """A server that workers reach past the network, or only by it: a stranger sits where it would be near."""
    if request.param == "near":
        with cargobike.torch.ParameterServer(SECRET) as server:
            yield server
        return
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(f"\0cargobike 127.0.0.1:{port}")
        stranger.listen()
        greeter = threading.Thread(target=_greet_wrongly, args=[stranger])
        greeter.start()
        with cargobike.torch.ParameterServer(SECRET, port=port) as server:
            yield server
        stranger.shutdown(socket.SHUT_RDWR)
        greeter.join()


def _greet_wrongly(stranger: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = stranger.accept()
            with connection, contextlib.suppress(ConnectionError):
                connection.sendall(b"cargobike ps  2\n\1" + bytes(64))
                connection.recv(113)
                connection.sendall(bytes(33))


def line(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Linear(3, 2)


def join(
    server: cargobike.torch.ParameterServer, model: nn.Module, optimizer: Any = None, rank: int = 0, **options: Any
) -> cargobike.torch.ParameterClient:
    options = {"timeout_s": 30, **options}
    return cargobike.torch.parameter_client(
        model, optimizer, servers=[server.address], secret=SECRET, rank=rank, **options
    )


def backward(model: nn.Module, value: float = 1.0) -> None:
    model(torch.full((4, 3), float(value))).square().sum().backward()


RULES = [
    lambda p: torch.optim.SGD(p, lr=0.05),
    lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1),
    lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.1),
    lambda p: torch.optim.AdamW(p, lr=0.05, betas=(0.8, 0.99), weight_decay=0.1),
]


@pytest.mark.parametrize("make", RULES)
@pytest.mark.parametrize("way", ["pull and push", "step", "zero_grad in between"])
def test_a_server_steps_as_torch_does(server: cargobike.torch.ParameterServer, make: Any, way: str) -> None:
    here, there = line(), line()
    optimizer = make(here.parameters())
    with join(server, there, make(there.parameters())) as client:
        for step in range(4):
            optimizer.zero_grad()
            backward(here, step)
            optimizer.step()
            if way == "zero_grad in between":
                there.zero_grad()
            backward(there, step)
            if way == "step":
                client.step()
            else:
                client.push()
                client.pull()
        assert client.counts()[0].version == client.applied == 4
    for ours, theirs in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_schedulers_on_the_worker_set_the_learning_rate(server: cargobike.torch.ParameterServer) -> None:
    model = line()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with join(server, model, optimizer) as client:
        optimizer.param_groups[0]["lr"] = 0.0
        before = model.weight.detach().clone()
        backward(model)
        client.step()
        assert torch.equal(model.weight, before)


def test_workers_start_from_worker_0_and_see_each_other(server: cargobike.torch.ParameterServer) -> None:
    first, second = line(1), line(2)
    with join(server, first) as one, join(server, second, rank=1) as two:
        assert torch.equal(first.weight, second.weight)
        backward(first)
        one.push()
        backward(second)
        two.push()
        assert (one.delay, two.delay) == (0, 1)
        one.pull()
        two.pull()
        assert torch.equal(first.weight, second.weight)


def test_stale_gradients_are_dropped_and_counted(server: cargobike.torch.ParameterServer) -> None:
    first, second = line(), line()
    with join(server, first, staleness=2) as one, join(server, second, rank=1, staleness=2) as two:
        for _ in range(3):
            backward(first)
            one.step()
        before = first.weight.detach().clone()
        backward(second)
        assert two.step() is False
        assert (two.applied, two.dropped, two.delay) == (0, 1, 3)
        assert torch.equal(second.weight, before), "the late worker goes on from the newest parameters"
        backward(second)
        assert two.step() is True
        counts = one.counts()[0]
        assert (counts.version, counts.applied, counts.dropped, counts.delay_max) == (4, 4, 1, 0)


def test_late_gradients_count_less_if_asked(server: cargobike.torch.ParameterServer) -> None:
    first, second = line(), line()
    options = {"scale_by_delay": True}
    sgd = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (first, second)]
    with join(server, first, sgd[0], **options) as one, join(server, second, sgd[1], rank=1, **options) as two:
        for _ in range(3):
            backward(first, 0.0)
            one.step()
        before = first.bias.detach().clone()
        backward(second)
        gradient = second.bias.grad.clone()
        two.step()
        torch.testing.assert_close(second.bias, before - 0.1 / 4 * gradient)


def test_a_fast_worker_waits_for_the_slowest_and_the_deadline_names_it(server: cargobike.torch.ParameterServer) -> None:
    options: dict[str, Any] = {"staleness": 1, "on_stale": "wait"}
    first, second = line(), line()
    with join(server, first, **options) as one, join(server, second, rank=1, **options) as two:
        for _ in range(2):
            backward(first)
            one.push()
        patience_s, one._timeout_s = one._timeout_s, 1.0  # only for what must not succeed
        with pytest.raises(WaitError, match="waited 1 s for worker 1, which has made 0 steps; worker 0 2"):
            one.pull()
        one._timeout_s = patience_s
        backward(second)
        two.push()
        one.pull()
        thread = threading.Thread(target=two.close)
        backward(first)
        one.push()
        thread.start()  # a worker that leaves is not waited for
        one.pull()
        thread.join()


def test_worker_0_warms_up_alone(server: cargobike.torch.ParameterServer) -> None:
    first, second = line(1), line(2)
    joined = threading.Event()

    def come() -> None:
        with join(server, second, rank=1, warmup_steps=3) as two:
            seen.append(two.counts()[0].version)
            joined.set()

    seen: list[int] = []
    with join(server, first, warmup_steps=3) as one:
        thread = threading.Thread(target=come)
        thread.start()
        for _ in range(3):
            assert not joined.is_set()
            backward(first)
            one.step()
        thread.join(60)
    assert seen == [3]


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(1000, 8, sparse=True)
        self.out = nn.Linear(8, 1)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.out(self.table(words)).sum()


def test_embeddings_travel_by_rows(server: cargobike.torch.ParameterServer) -> None:
    plain, model = Words(), Words()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    with join(server, model, torch.optim.SGD(model.parameters(), lr=0.1)) as client:
        for step in range(4):
            words = torch.tensor([3, 7, 7, 900 + step])
            client.pull(rows={"table.weight": words})
            model(words).backward()
            client.push()
            optimizer.zero_grad()
            plain(words).backward()
            optimizer.step()
        assert client.traffic.sent_bytes < 0.02 * client.traffic.raw_bytes
        client.pull()
        with pytest.raises(InvalidInputError, match=r"sparse=True \(table.weight\), not \['out.weight'\]"):
            client.pull(rows={"out.weight": torch.tensor([0])})
    torch.testing.assert_close(model.table.weight, plain.table.weight)
    torch.testing.assert_close(model.out.weight, plain.out.weight)


def test_a_stranger_is_refused_before_anything_is_read(
    server: cargobike.torch.ParameterServer, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AuthenticationError, match="does not accept our secret"):
        cargobike.torch.parameter_client(line(), servers=[server.address], secret=b"wrong" * 8, timeout_s=10)
    host, _, port = server.address.partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as stranger:
        stranger.sendall(b"\xff" * 4096)
        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(1024):
                pass
    assert server.shard is None
    with join(server, line()) as client:
        assert client.counts()[0].version == 0
    assert SECRET.decode() not in caplog.text


def test_a_false_server_is_not_believed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "{}:{}".format(*listener.getsockname())

        def pretend() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"cargobike ps  2\n\1" + b"n" * 64)
                connection.recv(113)
                connection.sendall(bytes(33))

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(AuthenticationError, match=f"server 0 at {address}: the server does not know the secret"):
            cargobike.torch.parameter_client(line(), servers=[address], secret=SECRET, timeout_s=10)
        thread.join(30)


def test_another_model_is_refused_by_name(server: cargobike.torch.ParameterServer) -> None:
    with (
        join(server, line()),
        pytest.raises(ServerRefusedError, match=r"weight: \(2, 3\) here, \(5, 3\) in the worker"),
    ):
        join(server, nn.Linear(3, 5), rank=1)


def test_a_server_that_is_not_there_is_named_after_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "{}:{}".format(*listener.getsockname())
    with pytest.raises(WaitError, match=rf"parameter server 0 at {address} did not answer within 0.3 s"):
        cargobike.torch.parameter_client(line(), servers=[address], secret=SECRET, timeout_s=0.3)


def test_a_file_brings_everything_back(tmp_path: Path) -> None:
    path = tmp_path / "shard.bin"
    model, plain = line(), line()
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.1)
    for life in range(2):
        with (
            cargobike.torch.ParameterServer(SECRET, checkpoint=path) as server,
            join(server, model, torch.optim.Adam(model.parameters(), lr=0.1)) as client,
        ):
            for _ in range(2):
                backward(model)
                client.step()
                optimizer.zero_grad()
                backward(plain)
                optimizer.step()
            counts = client.counts()[0]
            assert (counts.version, counts.restored) == (2 + 2 * life, life)
    torch.testing.assert_close(model.weight, plain.weight)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(StoreError, match="is damaged"):
        cargobike.torch.ParameterServer(SECRET, checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(StoreError, match="not a parameter server's checkpoint"):
        cargobike.torch.ParameterServer(SECRET, checkpoint=path)


def test_a_server_that_lost_everything_is_told_again() -> None:
    model = line()
    with cargobike.torch.ParameterServer(SECRET) as first:
        port = int(first.address.rpartition(":")[2])
        client = join(first, model)
        backward(model)
        client.step()
        before = model.weight.detach().clone()
    with cargobike.torch.ParameterServer(SECRET, port=port) as second:
        client.pull()
        assert torch.equal(model.weight, before)
        assert client.reconnects >= 1
        assert second.shard is not None
        client.close()


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_parameters_of_other_types_are_copied(server: cargobike.torch.ParameterServer, kind: torch.dtype) -> None:
    model, plain = line().to(kind), line().to(kind)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    with join(server, model, torch.optim.SGD(model.parameters(), lr=0.1)) as client:
        for _ in range(2):
            for each in (model, plain):
                each(torch.ones((4, 3), dtype=kind)).square().mean().backward()
            client.step()
            optimizer.step()
            optimizer.zero_grad()
    assert model.weight.dtype == kind
    torch.testing.assert_close(model.weight, plain.weight, rtol=0.02, atol=0.02)


def test_an_experiment_with_wrong_options_starts_nothing() -> None:
    with pytest.raises(
        InvalidInputError, match=r"(?s)no option 'stalenes'.*mean 'staleness'.*compression must be one of"
    ):
        experiment.parameter_server(line, workers=1, stalenes=8, compression="zip")


def test_parameters_are_divided_evenly() -> None:
    specs = [TensorSpec(f"p{i}", (size,)) for i, size in enumerate([100, 1, 50, 49, 2, 98])]
    parts = divide(specs, 3)
    assert sorted(spec.name for part in parts for spec in part) == [spec.name for spec in specs]
    assert [sum(spec.size for spec in part) for part in parts] == [100, 100, 100]


def test_wrong_options_are_named() -> None:
    model = line()
    for options, words in [
        ({"compression": "int9"}, "compression must be one of none, fp16, bf16, int8, topk, not 'int9'"),
        ({"compression": "topk:2"}, "is not understood"),
        ({"parameter_compression": "topk"}, "parameter_compression must be one of none, fp16, bf16, int8,"),
        ({"staleness": -1, "on_stale": "x"}, r"(?s)staleness must be.*on_stale must be 'drop' or 'wait'"),
        ({"stalenes": 1}, "there is no option 'stalenes'.*mean 'staleness'"),
        ({"servers": []}, "at least one address"),
    ]:
        with pytest.raises(InvalidInputError, match=words):
            cargobike.torch.parameter_client(model, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"know torch.optim.SGD, Adam and AdamW, not RMSprop"):
        cargobike.torch.parameter_client(model, torch.optim.RMSprop(model.parameters()))
