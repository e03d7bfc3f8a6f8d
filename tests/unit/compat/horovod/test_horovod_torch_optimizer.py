"""`DistributedOptimizer` and what gives ranks the same state: two ranks train as one with both their data would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import cargobike.compat.horovod.torch as hvd
from cargobike.compat.horovod.torch.compression import Compressor
from support.rank_host import RankHost


@pytest.fixture(autouse=True)
def leaving() -> Iterator[None]:
    yield
    hvd.shutdown()


def make_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def make_data(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(6, 4, generator=generator), torch.randn(6, 3, generator=generator)


def expected(steps: int = 3, scale: float = 1.0, clip: float = 0.0) -> list[float]:
    """Return the weights after training on the data of both ranks in one process."""
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        for rank in (0, 1):
            x, y = make_data(rank)
            (scale * nn.functional.mse_loss(model(x), y) / 2).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return flat(model)


def flat(model: nn.Module) -> list[float]:
    values: list[float] = torch.cat([one.detach().reshape(-1) for one in model.parameters()]).tolist()
    return values


class Doubling(Compressor):
    """A compression of a user's own."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor.double(), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor.to(ctx)


def train(options: dict[str, Any], passes: int = 1, clip: float = 0.0) -> list[float]:
    model = make_model()
    if hvd.rank() == 1:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1.0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    plain = torch.optim.Adam(model.parameters(), lr=0.01 if hvd.rank() == 0 else 0.5)
    if options.get("groups") == "two":
        options = {**options, "groups": [list(model[0].parameters()), [model[2].weight]]}
    optimizer = hvd.DistributedOptimizer(
        plain, named_parameters=model.named_parameters(), backward_passes_per_step=passes, **options
    )
    assert isinstance(optimizer, torch.optim.Adam)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    x, y = make_data(hvd.rank())
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(passes):
            nn.functional.mse_loss(model(x), y).backward()
        if clip:
            optimizer.synchronize()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
    return flat(model)


def train_in_all_ways() -> dict[str, list[float]]:
    hvd.init()
    results = {
        "plain": train({}),
        "predivided": train({"gradient_predivide_factor": 2.0}),
        "groups": train({"groups": 2}),
        "lists": train({"groups": "two"}),
        "own": train({"compression": Doubling}),
        "fp16": train({"compression": hvd.Compression.fp16}),
        "bf16": train({"compression": hvd.Compression.bf16}),
        "passes": train({}, passes=2),
        "sum": train({"op": hvd.Sum}),
        "clipped": train({}, clip=0.1),
    }
    hvd.shutdown()
    return results


def test_ranks_train_as_one_would(host: RankHost) -> None:
    first, second = host.ranks(train_in_all_ways)
    assert first == second
    for name in ("plain", "predivided", "groups", "lists", "own"):
        assert first[name] == pytest.approx(expected(), abs=1e-5), name
    assert first["fp16"] == pytest.approx(expected(), abs=2e-3)
    assert first["bf16"] == pytest.approx(expected(), abs=1e-2)
    assert first["passes"] == pytest.approx(expected(scale=2.0), abs=1e-5)
    assert first["sum"] == pytest.approx(expected(scale=2.0), abs=1e-5)
    assert first["clipped"] == pytest.approx(expected(clip=0.1), abs=1e-5)


def odd_backwards() -> Any:
    hvd.init()
    rank = hvd.rank()
    model = nn.ModuleDict({"a": nn.Linear(1, 1, bias=False), "b": nn.Linear(1, 1, bias=False)})
    hvd.broadcast_parameters(list(model.named_parameters()), 0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    model["ab"[rank]](torch.ones(1, 1)).backward()  # each rank uses another part of the model
    optimizer.step()
    gradients = [parameter.grad.tolist() for parameter in model.parameters()]
    optimizer.zero_grad()
    loss = model["b"](model["a"](torch.ones(1, 1)))
    loss.backward(retain_graph=True)
    with pytest.raises(AssertionError, match="on their way"):
        optimizer.zero_grad()
    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        loss.backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning, match="skip_synchronize"):
        optimizer.step()
    table = nn.Embedding(4, 2, sparse=True)
    rows = []
    for as_dense in (False, True):
        nn.init.zeros_(table.weight)
        other = hvd.DistributedOptimizer(
            torch.optim.SGD(table.parameters(), lr=1.0), table.named_parameters(), sparse_as_dense=as_dense
        )
        for _ in range(2):
            other.zero_grad()
            table(torch.tensor([0, 1 + rank])).sum().backward()
            other.step()
        rows.append(table.weight[:, 0].tolist())
    hvd.shutdown()
    return gradients, rows


def test_parts_that_are_not_used_and_sparse_gradients(host: RankHost) -> None:
    first, second = host.ranks(odd_backwards)
    assert first == second
    gradients, rows = first
    assert gradients == [[[0.5]], [[0.5]]]
    assert rows == [[-2.0, -1.0, -1.0, 0.0]] * 2


def normalize() -> Any:
    hvd.init()
    torch.manual_seed(0)
    data = torch.randn(5, 3, 4, dtype=torch.float64)
    plain, synced = nn.BatchNorm1d(3).double(), hvd.SyncBatchNorm(3).double()
    own = data[:2] if hvd.rank() == 0 else data[2:]
    own = own.clone().requires_grad_()
    whole = data.clone().requires_grad_()
    weight = torch.arange(60.0, dtype=torch.float64).reshape(5, 3, 4).sin()
    (plain(whole) * weight).sum().backward()
    (synced(own) * (weight[:2] if hvd.rank() == 0 else weight[2:])).sum().backward()
    part = slice(0, 2) if hvd.rank() == 0 else slice(2, 5)
    assert whole.grad is not None
    same = [
        torch.allclose(own.grad, whole.grad[part]),
        torch.allclose(synced.running_mean, plain.running_mean),
        torch.allclose(synced.running_var, plain.running_var),
        torch.allclose(synced.eval()(own), plain.eval()(own)),
    ]
    lbfgs = torch.optim.LBFGS(plain.parameters())
    with pytest.raises(ValueError, match="LBFGS"):
        hvd.broadcast_optimizer_state(lbfgs, 0)
    with pytest.raises(ValueError, match="dict or a list"):
        hvd.broadcast_parameters(plain.parameters(), 0)
    linear = nn.Linear(2, 1)
    adaptive = hvd.DistributedOptimizer(
        torch.optim.SGD(linear.parameters(), lr=1.0), linear.named_parameters(), op=hvd.Adasum
    )
    hvd.broadcast_parameters(linear.state_dict(), 0)
    before = linear.weight.detach().clone()
    linear(torch.eye(2)[hvd.rank()]).sum().backward()
    adaptive.step()
    hvd.shutdown()
    return same, (before - linear.weight.detach()).reshape(-1).tolist()


def test_batch_norm_of_all_ranks_and_adasum(host: RankHost) -> None:
    first, second = host.ranks(normalize)
    assert first[0] == second[0] == [True] * 4
    assert first[1] == second[1] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"named_parameters": [("a", None), ("a", None)]}, "must be unique, these are not: a"),
        ({"named_parameters": ["a"]}, "pairs of name and parameter"),
        ({"named_parameters": []}, "no name for 2 of"),
        ({"gradient_predivide_factor": 2.0, "op": hvd.Sum}, "op=hvd.Average only"),
        ({"backward_passes_per_step": 0}, "above 0, 0 was given"),
        ({"groups": -1}, "groups must be above 0"),
        ({"groups": [["x"]]}, "must hold tensors"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    hvd.init()
    with pytest.raises(ValueError, match=message):
        hvd.DistributedOptimizer(torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0), **options)


def test_one_rank_alone_trains_as_ever() -> None:
    hvd.init()
    model = make_model()
    schedule_first = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(schedule_first, 1, gamma=0.5)
    optimizer = hvd.DistributedOptimizer(schedule_first)
    x, y = make_data(0)
    losses = []
    for _ in range(3):

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
        schedule_first.step()
        schedule.step()
    assert losses == sorted(losses, reverse=True)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 / 8)
