"""`prepare` with a loader that knows its place: no second share, no second count, one place in `run.state()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import cargobike.torch
from cargobike import data
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.data.feeding import describe
from cargobike.data.followed import FollowedLoader, open_loader

ROWS = 22


def fed(tmp_path: Path, **options: Any) -> FollowedLoader:
    rows = {"id": np.arange(ROWS), "x": np.linspace(-1, 1, ROWS, dtype=np.float32)}
    given = data.Loader(rows, batch_size=4, shuffle=True, seed=2, to="torch", **options)
    project = ProjectFolder(tmp_path)
    return open_loader(describe(given, project), project.root, 0, 1, lambda path: None)


def prepared(loader: Any, **options: Any) -> Any:
    torch.manual_seed(1)
    model = nn.Linear(1, 1)
    return cargobike.torch.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, **options)


def step(run: Any, batch: dict[str, torch.Tensor]) -> list[int]:
    run.optimizer.zero_grad()
    run.model(batch["x"].view(-1, 1)).square().mean().backward()
    run.optimizer.step()
    return [int(row) for row in batch["id"]]


def test_a_run_goes_on_where_its_loader_was(tmp_path: Path) -> None:
    run = prepared(fed(tmp_path))
    assert (len(run.loader), run.loader.epoch, run.loader.position) == (6, 0, 0)
    seen: list[int] = []
    for batch in run.loader:
        seen += step(run, batch)
        if len(seen) == 8:
            break
    assert run.loader.position == 2
    state = run.state()
    again = prepared(fed(tmp_path))
    again.load(state)
    assert (again.loader.epoch, again.loader.position) == (0, 2)
    for batch in again.loader:
        seen += step(again, batch)
    assert sorted(seen) == list(range(ROWS))
    assert again.loader.epoch == 1
    again.load({**state, "data": '{"epoch": 3}'})
    assert again.loader.epoch == 3


@pytest.mark.parametrize("accumulate", [1, 4])
def test_the_last_window_of_an_epoch_is_closed(tmp_path: Path, accumulate: int) -> None:
    run = prepared(fed(tmp_path), accumulate=accumulate)
    steps: list[torch.Tensor] = []
    for batch in run.loader:
        before = [parameter.detach().clone() for parameter in run.plain_model.parameters()]
        step(run, batch)
        now = list(run.plain_model.parameters())
        steps += [now[0]] if any(not torch.equal(one, other) for one, other in zip(before, now, strict=True)) else []
    assert len(steps) == -(-6 // accumulate)


def test_a_dataloader_around_it_is_refused(tmp_path: Path) -> None:
    loader = fed(tmp_path)
    with pytest.raises(InvalidInputError, match=r"Give that one itself, as in prepare\(model, optimizer, data\)"):
        prepared(DataLoader(loader.as_torch(), batch_size=None))
    with pytest.raises(InvalidInputError, match="was made for 3 ranks, and there are 1"):
        prepared(loader.for_rank(1, 3))
    with pytest.raises(InvalidInputError, match=r"loader must be a torch\.utils\.data\.DataLoader"):
        prepared([1, 2])
