"""`hvd.elastic` of torch in one rank, and its sampler in any number of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import cargobike.compat.horovod.torch as hvd
from cargobike.compat.horovod.torch.elastic import ElasticSampler, TorchState
from cargobike.compat.horovod.torch.elastic import sampler as sampling
from cargobike.compat.horovod.torch.elastic.state import StateHandler, get_handler_registry, set_handler_registry


@contextlib.contextmanager
def being(rank: int, size: int) -> Iterator[None]:
    """Be one of several ranks, as far as samplers can tell."""
    with (
        mock.patch.object(sampling, "rank", return_value=rank),
        mock.patch.object(sampling, "size", return_value=size),
    ):
        yield


def shares(rows: int, ranks: int, state: dict[str, int], *, shuffle: bool) -> list[list[int]]:
    """Return what each rank would get from a state on."""
    dealt = []
    for rank in range(ranks):
        with being(rank, ranks):
            sampler = ElasticSampler(range(rows), shuffle=shuffle, seed=3)
            sampler.load_state_dict(dict(state))
            dealt.append(list(sampler))
            assert len(dealt[-1]) == len(sampler)
    return dealt


@given(
    rows=st.integers(1, 60),
    worlds=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=4),
    last=st.integers(1, 5),
    batch=st.integers(1, 4),
    shuffle=st.booleans(),
)
def test_an_epoch_holds_each_sample_once_however_ranks_come_and_go(
    rows: int, worlds: list[tuple[int, int]], last: int, batch: int, shuffle: bool
) -> None:
    state = {"epoch": 1, "processed_num": 0}
    seen: list[int] = []
    for ranks, batches in worlds:
        if state["processed_num"] >= rows:
            break
        with being(0, ranks):
            sampler = ElasticSampler(range(rows), shuffle=shuffle, seed=3)
            sampler.load_state_dict(dict(state))
            full = min(batches, (rows - state["processed_num"]) // (batch * ranks))  # those of whole batches
            for number in range(full):
                sampler.record_batch(number, batch)
        for share in shares(rows, ranks, state, shuffle=shuffle):
            seen += share[: full * batch]
        state = dict(sampler.state_dict())
    left = rows - len(seen)
    assert len(seen) == state["processed_num"]
    dealt = shares(rows, last, state, shuffle=shuffle) if left else []
    assert len({len(share) for share in dealt}) <= 1
    in_order = [share[position] for position in range(len(dealt[0])) for share in dealt] if dealt else []
    assert sorted(seen + in_order[:left]) == list(range(rows))
    assert set(in_order[left:]) <= set(in_order[:left])  # what fills up the last round


def test_each_epoch_has_an_order_of_its_own_unless_it_is_not_shuffled() -> None:
    with being(0, 1):
        sampler = ElasticSampler(range(20))
        first = list(sampler)
        sampler.record_batch(0, 4)
        sampler.set_epoch(1)
        assert sampler.processed_num == 0
        assert list(sampler) != first
        assert sorted(sampler) == list(range(20))
        assert list(ElasticSampler(range(5), shuffle=False)) == [0, 1, 2, 3, 4]


@pytest.fixture
def alone() -> Iterator[None]:
    hvd.init()
    yield
    hvd.shutdown()


def total(model: torch.nn.Module) -> float:
    return float(sum(parameter.detach().sum().item() for parameter in model.parameters()))


@pytest.mark.usefixtures("alone")
def test_models_optimizers_schedules_and_samplers_go_back_to_the_last_commit() -> None:
    model, other = torch.nn.Linear(2, 1), torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
    sampler = ElasticSampler(range(10))
    state = TorchState(model, optimizer, other=other, schedule=schedule, sampler=sampler, epoch=0)
    assert state.model is model
    assert state.other is other
    state.sync()
    before = total(model), total(other), optimizer.param_groups[0]["lr"], sampler.state_dict()
    model(torch.ones(2)).backward()
    other(torch.ones(3)).backward()
    with torch.no_grad():
        other.weight += 1
    optimizer.step()
    schedule.step()
    sampler.record_batch(0, 4)
    state.epoch = 3
    assert before != (total(model), total(other), optimizer.param_groups[0]["lr"], sampler.state_dict())
    state.restore()
    assert before == (total(model), total(other), optimizer.param_groups[0]["lr"], sampler.state_dict())
    assert state.epoch == 0
    assert len(list(sampler)) == 10


@pytest.mark.usefixtures("alone")
def test_a_commit_is_what_is_restored() -> None:
    model = torch.nn.Linear(2, 1)
    state = TorchState(model=model, epoch=0)
    with torch.no_grad():
        model.weight.fill_(7)
    state.epoch = 1
    state.commit()
    with torch.no_grad():
        model.weight.fill_(8)
    state.restore()
    assert model.weight.tolist() == [[7, 7]]
    assert state.epoch == 1


@pytest.mark.usefixtures("alone")
def test_a_model_that_takes_the_place_of_another_is_kept_from_then_on() -> None:
    state = TorchState(model=torch.nn.Linear(2, 1))
    state.model = torch.nn.Linear(4, 1)
    kept = total(state.model)
    with torch.no_grad():
        state.model.weight += 1
    state.restore()
    assert total(state.model) == pytest.approx(kept)


@pytest.mark.usefixtures("alone")
def test_users_enter_handlers_for_kinds_of_their_own() -> None:
    class Counted:
        number = 0

    class Handler(StateHandler):
        def save(self) -> None:
            self.saved = self.value.number

        def restore(self) -> None:
            self.value.number = self.saved

        def sync(self) -> None:
            self.save()

    before = list(get_handler_registry())
    try:
        set_handler_registry([(Counted, Handler), *before])
        state = TorchState(counted=Counted())
        state.sync()
        state.counted.number = 5
        state.restore()
        assert state.counted.number == 0
    finally:
        set_handler_registry(before)


@pytest.mark.usefixtures("alone")
def test_outside_an_elastic_job_the_function_is_called_once() -> None:
    @hvd.elastic.run
    def train(state: TorchState, steps: int) -> int:
        for _ in range(steps):
            state.step += 1
            state.commit()
        return int(state.step)

    assert train(TorchState(step=0), 3) == 3
