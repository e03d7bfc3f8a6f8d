"""Loops that are lost and go on: each says which rows it has trained, by epoch, and what its weights are in the end.

The first attempt saves once, trains a batch more, which counts for nothing, and is gone. The second one is made anew,
with another seed, and goes on from what was saved, with as many ranks as it happens to have.
"""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, TensorDataset, get_worker_info

import cargobike.torch

EPOCHS = 3
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.02),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.05),
}


@dataclass(frozen=True)
class Cell:
    """One way to train, and one moment to be lost at."""

    strategy: str = "ddp"
    optimizer: str = "sgd"
    sharded: bool = False
    moment: str = "middle"
    loading: str = "shuffled"
    rows: int = 23
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        saved = "sharded" if self.sharded else "whole"
        return f"{self.strategy} {self.optimizer} {saved} {self.moment} {self.loading} {self.options or ''}".strip()


class Stream(IterableDataset[Any]):
    """Rows in order; with several processes each reads its own part."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        begin, step = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        return ((torch.tensor(row), inputs_of(row)) for row in range(begin, self.rows, step))


def inputs_of(row: int) -> torch.Tensor:
    return torch.tensor([row / 24, 1.0 - row / 12, (row % 5) / 5])


def make_loader(cell: Cell) -> DataLoader[Any]:
    ids = torch.arange(cell.rows)
    if cell.loading == "own":  # every rank has data of its own
        ids = ids * 2 + int(os.environ.get("RANK", "0"))
    data = TensorDataset(ids, torch.stack([inputs_of(int(row)) for row in ids]))
    two: dict[str, Any] = {"batch_size": 2, "shuffle": True}
    kinds: dict[str, Any] = {
        "shuffled": lambda: DataLoader(data, **two),
        "own": lambda: DataLoader(data, **two),
        "in order": lambda: DataLoader(data, batch_size=2),
        "generator": lambda: DataLoader(data, **two, generator=torch.Generator().manual_seed(5)),
        "drop_last": lambda: DataLoader(data, **two, drop_last=True),
        "workers": lambda: DataLoader(data, **two, num_workers=2),
        "kept workers": lambda: DataLoader(data, **two, num_workers=2, persistent_workers=True),
        "batches": lambda: DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 2, drop_last=False)),
        "one by one": lambda: DataLoader(data, batch_size=1, shuffle=True),
        "stream": lambda: DataLoader(Stream(cell.rows), batch_size=2),
        "stream, workers": lambda: DataLoader(Stream(cell.rows), batch_size=2, num_workers=2),
    }
    loader: DataLoader[Any] = kinds[cell.loading]()
    return loader


class Loop:
    """A prepared loop that writes down the rows that it trains."""

    def __init__(self, cell: Cell, seed: int) -> None:
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
        optimizer = OPTIMIZERS[cell.optimizer](model.parameters())
        self.run = cargobike.torch.prepare(
            model, optimizer, make_loader(cell), strategy=cell.strategy, timeout_s=200, **cell.options
        )
        self.cell = cell
        self.rows: list[tuple[int, list[int]]] = []

    def batches(self) -> Iterator[tuple[int, int]]:
        """Train batch by batch; yields the epoch and the batch's number in it, those of earlier attempts counted."""
        run = self.run
        for epoch in range(run.loader.epoch, EPOCHS):
            for index, (ids, inputs) in enumerate(run.loader, start=run.loader.position):
                if self.cell.moment == "before the step" and index == 2:
                    yield epoch, index
                run.optimizer.zero_grad()
                (run.model(inputs) - 1).square().mean().backward()
                run.optimizer.step()
                self.rows.append((epoch, ids.reshape(-1).tolist()))
                if self.cell.moment != "before the step" or index != 2:
                    yield epoch, index
            with torch.no_grad():  # a validation
                run.model(torch.zeros(2, 3))
            yield epoch, -1

    def is_moment(self, epoch: int, index: int) -> bool:
        last = len(self.run.loader) - 1 if self.cell.moment == "last batch" else -1
        return (
            epoch == 1 and index == {"middle": 1, "before the step": 2, "last batch": last, "end": -1}[self.cell.moment]
        )

    def weights(self) -> list[float]:
        state = self.run.state()
        return [float(value) for tensor in state.get("model", {}).values() for value in tensor.reshape(-1)]


def until_saved(cell: Cell, folder: str, seed: int = 1) -> list[tuple[int, list[int]]]:
    """Train until the moment, save, train one batch more; returns the rows that are saved."""
    loop = Loop(cell, seed)
    steps = loop.batches()
    for epoch, index in steps:
        if loop.is_moment(epoch, index):
            break
    save(loop.run, cell, folder)
    kept = list(loop.rows)
    next(steps, None)
    if "accumulate" in cell.options:  # what is not in the weights is not saved
        kept = kept[: len(kept) - (index + 1) % cell.options["accumulate"]]
    return kept


def from_saved(cell: Cell, folder: str, seed: int = 2) -> tuple[list[tuple[int, list[int]]], list[float]]:
    """Go on from what was saved to the end; returns the rows trained, and in rank 0 the weights."""
    loop = Loop(cell, seed)
    load(loop.run, cell, folder)
    for _ in loop.batches():
        pass
    return loop.rows, loop.weights()


def undisturbed(cell: Cell, seed: int = 1) -> list[float]:
    """Train to the end, with the same visits to the checkpoint; returns the weights in rank 0."""
    loop = Loop(cell, seed)
    for epoch, index in loop.batches():
        if loop.is_moment(epoch, index):
            loop.run.sharded_state() if cell.sharded else loop.run.state()
    return loop.weights()


def save(run: Any, cell: Cell, folder: str) -> None:
    if cell.sharded:
        dcp.save(run.sharded_state(), checkpoint_id=place_of(cell, folder), no_dist=not dist.is_initialized())
    elif state := run.state():
        place_of(cell, folder).write_bytes(pickle.dumps(state))
    run.barrier()


def load(run: Any, cell: Cell, folder: str) -> None:
    if cell.sharded:
        state = run.sharded_state()
        dcp.load(state, checkpoint_id=place_of(cell, folder), no_dist=not dist.is_initialized())
        run.load_sharded(state)
    else:
        run.load(pickle.loads(place_of(cell, folder).read_bytes()))


def place_of(cell: Cell, folder: str) -> Path:
    return Path(folder) / cell.name.replace(" ", "_")


def lose_and_go_on(cells: Sequence[Cell], folder: str) -> dict[str, Any]:
    """Do it all with this number of ranks, for every cell."""
    return {cell.name: (until_saved(cell, folder), *from_saved(cell, folder), undisturbed(cell)) for cell in cells}


def only_lose(cells: Sequence[Cell], folder: str) -> dict[str, Any]:
    return {cell.name: until_saved(cell, folder) for cell in cells}


def only_go_on(cells: Sequence[Cell], folder: str) -> dict[str, Any]:
    return {cell.name: from_saved(cell, folder) for cell in cells}


def counted(*trained: list[tuple[int, list[int]]]) -> dict[int, Counter[int]]:
    """Count how often each row was trained in each epoch, by all ranks and attempts together."""
    epochs: dict[int, Counter[int]] = {epoch: Counter() for epoch in range(EPOCHS)}
    for rows in trained:
        for epoch, ids in rows:
            epochs[epoch].update(ids)
    return epochs


def as_text(epochs: dict[int, Counter[int]]) -> str:
    return json.dumps({epoch: dict(sorted(counter.items())) for epoch, counter in epochs.items()})
