"""Where training stands in its data: what counts as trained, and how a loop alone goes on in the middle of an epoch."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, Sampler, TensorDataset

import cargobike.torch
from cargobike.training.progress import Progress, Taken, count_taken, skip_taken


def test_a_batch_counts_when_the_optimizer_has_stepped_after_it() -> None:
    progress = Progress(expects_steps=True)
    progress.begin_pass()
    progress.give(is_last=False)
    progress.step()
    progress.give(is_last=False)
    assert progress.position() == (0, 1)
    progress.step()
    assert progress.position() == (0, 2)
    progress.give(is_last=True)
    assert progress.position() == (0, 2)
    progress.step()
    assert progress.position() == (1, 0)


def test_without_an_optimizer_a_batch_counts_when_it_is_given_out() -> None:
    for expects in (False, True):  # one that was prepared and never steps says nothing
        progress = Progress(expects_steps=expects)
        number = progress.begin_pass()
        progress.give(is_last=False)
        assert progress.position() == (0, 1)
        assert (progress.epoch, progress.next_epoch) == (0, 1)
        progress.end_pass(number, is_complete=True)
        assert progress.position() == (1, 0)


def test_a_pass_that_is_left_is_over_unless_it_was_only_a_look() -> None:
    progress = Progress(expects_steps=True)
    progress.go_to(3, [Taken(2, 4)])
    look = progress.begin_pass()
    progress.give(is_last=False)
    progress.end_pass(look, is_complete=False)
    assert (progress.position(), progress.taken) == ((3, 0), (Taken(2, 4),))
    number = progress.begin_pass()
    progress.give(is_last=False)
    progress.step()
    progress.end_pass(look, is_complete=False)  # the iterator of the look is collected only now
    assert progress.position() == (3, 1)
    progress.end_pass(number, is_complete=False)
    assert (progress.position(), progress.taken) == ((4, 0), ())


def test_a_new_pass_ends_one_whose_iterator_is_still_there() -> None:
    progress = Progress()
    first = progress.begin_pass()
    progress.give(is_last=False)
    progress.begin_pass()
    progress.end_pass(first, is_complete=False)
    assert (progress.epoch, progress.given) == (1, 0)


def test_the_rest_of_an_order_begins_after_what_all_attempts_took() -> None:
    taken = [Taken(2, 3), Taken(4, 2)]
    assert count_taken(taken) == 14
    assert skip_taken(range(20), taken) == range(14, 20)
    assert list(skip_taken([1, 2, 3], taken)) == []


# -- alone -----------------------------------------------------------------------------------------------------------


class Drawn(Sampler[int]):
    """Draws from every generator that there is, row by row."""

    def __len__(self) -> int:
        return 12

    def __iter__(self) -> Iterator[int]:
        for _ in range(12):
            yield int(torch.randint(5, ()).item() + 5 * random.randrange(5) + 25 * np.random.randint(5))


class Endless(Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10**9))


class Rows(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return ((torch.tensor(row), torch.ones(1)) for row in range(125))


DATA = TensorDataset(torch.arange(125), torch.ones(125, 1))
KINDS: dict[str, Callable[[], DataLoader[Any]]] = {
    "shuffled": lambda: DataLoader(DATA, batch_size=3, shuffle=True),
    "generator": lambda: DataLoader(DATA, batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(5)),
    "own sampler": lambda: DataLoader(DATA, batch_size=3, sampler=Drawn()),
    "endless sampler": lambda: DataLoader(DATA, batch_size=3, sampler=Endless()),
    "batches": lambda: DataLoader(DATA, batch_sampler=BatchSampler(RandomSampler(DATA), 3, drop_last=True)),
    "list": lambda: DataLoader(DATA, batch_size=2, sampler=list(range(20, 2, -1))),
    "stream": lambda: DataLoader(Rows(), batch_size=3),
}


def prepared(kind: str, seed: int, accumulate: int = 1) -> cargobike.torch.Prepared:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return cargobike.torch.prepare(model, optimizer, KINDS[kind](), accumulate=accumulate)


def step(run: cargobike.torch.Prepared, inputs: torch.Tensor) -> None:
    run.model(inputs).sum().backward()
    run.optimizer.step()
    run.optimizer.zero_grad()


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_alone_draws_the_rest_of_the_order_that_it_had_begun(kind: str) -> None:
    run = prepared(kind, seed=1)
    if kind != "endless sampler":
        for _, inputs in run.loader:
            step(run, inputs)
    rows = []
    state: dict[str, Any] = {}
    for index, (ids, inputs) in enumerate(run.loader):
        step(run, inputs)
        rows.append(ids.tolist())
        if index == 1:
            state = run.state()
        if index == 5:
            break
    other = prepared(kind, seed=2)
    other.load(state)
    assert other.loader.epoch == (0 if kind == "endless sampler" else 1)
    assert other.loader.position == 2
    next(iter(other.loader))  # a look costs nothing
    before = torch.get_rng_state()
    rest = [ids.tolist() for (ids, _), _ in zip(other.loader, range(4), strict=False)]
    assert rest[: len(rows) - 2] == rows[2:]
    assert kind == "generator" or torch.get_rng_state().shape == before.shape
    assert json.loads(state["data"])["taken"] == [[1, 2 if kind == "batches" else 4 if kind == "list" else 6]]


def test_a_loop_alone_goes_on_twice_in_the_same_epoch() -> None:
    run = prepared("shuffled", seed=1)
    rows = []
    for ids, inputs in run.loader:
        step(run, inputs)
        rows.append(ids.tolist())
    found: list[Any] = []
    first = prepared("shuffled", seed=1)
    state = first.state()
    for seed in (1, 2, 3):
        run = first if seed == 1 else prepared("shuffled", seed)
        if seed > 1:
            run.load(state)
        for index, (ids, inputs) in enumerate(run.loader, start=run.loader.position):
            step(run, inputs)
            found.append(ids.tolist())
            if seed < 3 and index == 10 * seed:
                state = run.state()
                break
    assert found == rows
    assert run.loader.epoch == 1


def test_what_is_not_yet_in_the_weights_comes_again() -> None:
    run = prepared("list", seed=1, accumulate=4)
    for index, (_, inputs) in enumerate(run.loader):
        step(run, inputs)
        if index == 5:  # six batches, of which four made a step
            state = run.state()
            break
    other = prepared("list", seed=1, accumulate=4)
    other.load(state)
    assert other.loader.position == 4
    assert len(list(other.loader)) == 5
    assert len(other.loader) == 9


def test_a_pass_that_was_left_is_not_gone_on_with() -> None:
    run = prepared("shuffled", seed=1)
    for index, (_, inputs) in enumerate(run.loader):
        step(run, inputs)
        if index == 3:  # this loop's epochs are short
            break
    state = run.state()
    assert state["epoch"] == 1
    other = prepared("shuffled", seed=1)
    other.load(state)
    assert (other.loader.epoch, other.loader.position) == (1, 0)


def test_setting_the_epoch_that_is_due_keeps_what_is_left_of_it() -> None:
    run = prepared("list", seed=1)
    for _, inputs in run.loader:
        step(run, inputs)
        state = run.state()
        break
    other = prepared("list", seed=1)
    other.load(state)
    other.loader.set_epoch(0)
    assert len(list(other.loader)) == 8
    other.loader.set_epoch(0)
    assert len(list(other.loader)) == 9


def test_a_state_of_an_earlier_version_is_loaded() -> None:
    run = prepared("list", seed=1)
    state = run.state()
    del state["data"]
    state["epoch"] = 2
    run.load(state)
    assert (run.loader.epoch, run.loader.position) == (2, 0)


def test_a_prepared_loader_may_be_prepared_again() -> None:
    run = prepared("shuffled", seed=1)
    again = cargobike.torch.prepare(loader=run.loader).loader
    orders = [[row for ids, _ in again for row in ids.tolist()] for _ in range(2)]
    assert orders[0] != orders[1]
    assert again.epoch == 2
