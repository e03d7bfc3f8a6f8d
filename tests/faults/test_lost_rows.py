"""A rank is killed in the middle of training: the gang goes on, and every row of every epoch is trained once."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import cargobike.torch
from cargobike import experiment, trial

ROWS = 24


def _train(folder: str, strategy: str, how: str) -> float:
    """Train three epochs as the guide teaches; rank 1 dies once, some batches after a checkpoint."""
    torch.manual_seed(3 + trial.attempt)
    data = TensorDataset(torch.arange(ROWS), torch.linspace(-1, 1, ROWS).view(-1, 1))
    model = nn.Linear(1, 4)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    run = cargobike.torch.prepare(model, optimizer, DataLoader(data, batch_size=2, shuffle=True), strategy=strategy)
    if how == "sharded":
        parts = run.sharded_state()
        if trial.checkpoint.load_sharded(parts) is not None:
            run.load_sharded(parts)
    elif (saved := trial.checkpoint.load()) is not None:
        run.load(saved)
    with Path(folder, f"{strategy}-{trial.attempt}-{trial.rank}").open("a", buffering=1) as log:
        for epoch in range(run.loader.epoch, 3):
            for index, (ids, inputs) in enumerate(run.loader, start=run.loader.position):
                run.optimizer.zero_grad()
                run.model(inputs).square().mean().backward()
                run.optimizer.step()
                print(json.dumps([epoch, ids.tolist()]), file=log)
                if index % 2 == 1:
                    step = epoch * len(run.loader) + index
                    if how == "sharded":
                        trial.checkpoint.save_sharded(run.sharded_state(), step=step)
                    else:
                        trial.checkpoint.save(run.state(), step=step)
                    trial.barrier()
                    print("saved", file=log)
                if trial.attempt == 1 and trial.rank == 1 and (epoch, index) == (1, 2):
                    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def _rows(folder: Path, strategy: str) -> list[Counter[int]]:
    """Count the rows of each epoch; what the first attempt trained after its last checkpoint does not count."""
    epochs = [Counter[int]() for _ in range(3)]
    files = sorted(folder.glob(f"{strategy}-*"))
    assert {file.name.split("-")[1] for file in files} == {"1", "2"}
    for file in files:
        lines = file.read_text().splitlines()
        if "-1-" in file.name:
            lines = lines[: len(lines) - lines[::-1].index("saved")]
        for line in lines:
            if line != "saved":
                epoch, ids = json.loads(line)
                epochs[epoch].update(ids)
    return epochs


@pytest.mark.parametrize(("strategy", "how"), [("ddp", "whole"), ("zero1", "whole"), ("fsdp", "sharded")])
def test_every_row_is_trained_once_when_a_rank_is_killed(tmp_path: Path, strategy: str, how: str) -> None:
    params = {"folder": str(tmp_path), "strategy": strategy, "how": how}
    experiment.allreduce(_train, params=params, workers=2, quiet=True)
    assert _rows(tmp_path, strategy) == [Counter(range(ROWS))] * 3
