"""A script for Horovod that chooses its hooks by `hvd.local_rank() == 0`, which is true once on every host.

The slide's script saved checkpoints there, so that several hosts wrote them. Here all ranks may save, and one does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

import cargobike.compat.horovod.torch as hvd
from cargobike import experiment, trial


def train(folder: str) -> float:
    os.environ["HOROVOD_HOSTNAME"] = f"host{trial.rank}"  # as if each rank were on a host of its own
    hvd.init()
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    data = torch.randn(16, 3)
    for step in range(3):
        optimizer.zero_grad()
        (model(data) - data.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
        if hvd.local_rank() == 0:
            trial.checkpoint.save({"model": model.state_dict()}, step=step)
        if hvd.rank() == 0:
            (Path(folder) / f"step{step}").touch(exist_ok=False)
    (Path(folder) / f"rank{hvd.rank()} {hvd.local_rank()} of {hvd.local_size()}").touch()
    return float(model.weight.detach().sum().item())


def test_checkpoints_are_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "written"
    folder.mkdir()
    run = experiment.allreduce(train, params={"folder": str(folder)}, workers=2, quiet=True)
    first, second = run.values
    assert first == second
    assert sorted(path.name for path in folder.iterdir()) == [
        *(f"rank{rank} 0 of 1" for rank in (0, 1)),
        *(f"step{step}" for step in range(3)),
    ]
    assert run.best is not None
    saved: Any = run.best.checkpoint
    assert saved.step == 2
    assert saved.load()["model"]["weight"].sum().item() == first
