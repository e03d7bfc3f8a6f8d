"""`prepare` outside a gang: what a loop computes does not change, and wrong input is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import cargobike.torch
from cargobike.core.errors import InvalidInputError
from cargobike.training import collectives, process_group
from support.digit_loops import fingerprint, network

DATA = TensorDataset(torch.linspace(0, 1, 70 * 64).view(70, 64), torch.arange(70) % 10)


def loop(parts: Iterable[Any], epochs: int = 2) -> int:
    model, optimizer, loader = parts
    steps = 0
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            steps += 1
    return steps


def parts(**loading: Any) -> tuple[nn.Module, torch.optim.Optimizer, DataLoader[Any]]:
    model = network()
    return model, torch.optim.SGD(model.parameters(), lr=0.5), DataLoader(DATA, **loading)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "zero1", "local_sgd", "parameter_server"])
def test_a_prepared_loop_computes_the_same_as_a_plain_one(strategy: str) -> None:
    plain, prepared = parts(batch_size=16), parts(batch_size=16)
    run = cargobike.torch.prepare(*prepared, strategy=strategy)
    assert loop(plain) == loop(run)
    assert fingerprint(run.plain_model) == fingerprint(plain[0])
    assert (run.group.rank, run.group.world_size) == (0, 1)
    assert run.uneven == ("join" if strategy == "parameter_server" else "pad")
    if run.client is not None:
        run.client.close()


def test_accumulated_batches_make_the_step_of_one_large_batch() -> None:
    large, small = parts(batch_size=40), parts(batch_size=10)
    run = cargobike.torch.prepare(*small, accumulate=4)
    loop(large, epochs=1)
    loop(run, epochs=1)
    # 70 samples: one step of 40 and one of 30, which is a window of three small batches
    assert fingerprint(run.plain_model) == pytest.approx(fingerprint(large[0]), rel=1e-5)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(DATA)


def test_a_stream_that_ends_inside_a_window_still_makes_a_mean() -> None:
    large, small = parts(batch_size=40), parts(batch_size=10)
    run = cargobike.torch.prepare(*small[:2], DataLoader(Stream(), batch_size=10), accumulate=4)
    loop(large, epochs=1)
    loop(run, epochs=1)
    assert fingerprint(run.plain_model) == pytest.approx(fingerprint(large[0]), rel=1e-5)


def test_schedulers_accept_the_prepared_optimizer_and_know_when_it_stepped() -> None:
    run = cargobike.torch.prepare(*parts(batch_size=10), accumulate=4)
    scheduler = torch.optim.lr_scheduler.StepLR(run.optimizer, step_size=1, gamma=0.5)
    for x, y in run.loader:
        nn.functional.cross_entropy(run.model(x), y).backward()
        run.optimizer.step()
        run.optimizer.zero_grad()
        if run.optimizer.stepped:
            scheduler.step()
    assert run.optimizer.param_groups[0]["lr"] == 0.5 * 0.5**2
    assert run.optimizer.state_dict()["param_groups"][0]["lr"] == 0.125


def test_autocast_computes_in_bf16_and_gives_back_fp32() -> None:
    seen: list[torch.dtype] = []
    model = network()
    model[2].register_forward_hook(lambda module, args, output: seen.append(output.dtype))
    (prepared,) = cargobike.torch.prepare(model, precision="bf16")
    assert prepared(torch.ones(2, 64)).dtype == torch.float32
    assert seen == [torch.bfloat16]
    assert not torch.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError):
        prepared(torch.ones(2, 3))
    assert not torch.is_autocast_enabled("cpu")


def test_mistakes_are_named() -> None:
    model, optimizer, _ = parts()
    with pytest.raises(InvalidInputError, match="Did you mean 'fsdp'"):
        cargobike.torch.prepare(model, strategy="fspd")
    with pytest.raises(InvalidInputError, match=r"(?s)model must be.*int.*optimizer must be.*str"):
        cargobike.torch.prepare(3, "sgd")
    with pytest.raises(InvalidInputError, match="accumulate=2 needs the optimizer"):
        cargobike.torch.prepare(model, accumulate=2)
    with pytest.raises(InvalidInputError, match="DataLoader, not list"):
        cargobike.torch.prepare(model, optimizer, [1, 2])
    with pytest.raises(InvalidInputError, match="sync_every is for"):
        cargobike.torch.prepare(model, optimizer, sync_every=3)
    with pytest.raises(InvalidInputError, match=r"compression must be one of .*mean 'powersgd'"):
        cargobike.torch.prepare(model, optimizer, compression="powersdg")
    with pytest.raises(InvalidInputError, match="nothing was given"):
        cargobike.torch.prepare()
    with pytest.raises(InvalidInputError, match="precision must be one of fp32, bf16"):
        cargobike.torch.prepare(model, precision="fp8")
    with pytest.raises(InvalidInputError, match="must be one of mean"):
        cargobike.torch.all_reduce(1.0, op="avg")  # type: ignore[arg-type]


def test_alone_everything_about_ranks_is_trivial() -> None:
    assert (cargobike.torch.rank(), cargobike.torch.world_size(), cargobike.torch.is_main()) == (0, 1, True)
    assert cargobike.torch.all_reduce(0.25, weight=7) == 0.25
    cargobike.torch.barrier()
    with cargobike.torch.main_first() as is_first:
        assert is_first


@pytest.mark.parametrize("length", ["2m", "120s", timedelta(minutes=2), 120])
def test_deadlines_are_written_in_words(length: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every door of torch hands on seconds, whatever they were written as."""
    waited: list[tuple[str, float | None]] = []
    monkeypatch.setattr(collectives, "barrier", lambda name, timeout_s: waited.append((name, timeout_s)))
    cargobike.torch.barrier(length)
    with cargobike.torch.main_first(length) as is_first:
        assert is_first
    cargobike.torch.prepare(network(), timeout_s=length).barrier(length)
    names = ["cargobike.torch.barrier", "cargobike.torch.barrier", "prepared.barrier"]
    assert waited == [(name, 120.0) for name in names]


def test_a_gang_meets_within_a_deadline_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[float] = []

    def make(_: object, timeout_s: float) -> process_group.Group:
        met.append(timeout_s)
        return process_group.Group(rank=0, world_size=2, timeout_s=timeout_s)

    monkeypatch.setattr(process_group, "current", lambda: SimpleNamespace(world_size=2, meeting="one"))
    monkeypatch.setattr(process_group, "_make", make)
    monkeypatch.setattr(process_group, "_joined", None)
    assert process_group.join_group("1h30m").timeout_s == 5400.0
    assert process_group.join_group().timeout_s == process_group.DEFAULT_TIMEOUT_S
    assert met == [5400.0, process_group.DEFAULT_TIMEOUT_S]


@pytest.mark.parametrize("wrong", ["soon", -1, [1]])
def test_deadlines_that_are_none_are_refused_at_once(wrong: Any) -> None:
    def enter() -> None:
        with cargobike.torch.main_first(wrong):
            pytest.fail("it began with a deadline that cannot be read")

    calls: list[Callable[[], object]] = [
        lambda: cargobike.torch.barrier(wrong),
        lambda: cargobike.torch.prepare(network(), timeout_s=wrong),
        lambda: cargobike.torch.prepare(network()).barrier(wrong),
        lambda: cargobike.torch.parameter_client(network(), timeout_s=wrong),
        enter,
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match="timeout_s"):
            call()
