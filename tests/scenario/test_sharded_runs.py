"""A run whose model is divided among ranks is saved in parts by an experiment's checkpoints, and goes on exactly."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import cargobike.torch
from cargobike import experiment, trial


def make(seed: int) -> cargobike.torch.Prepared:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    return cargobike.torch.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01), strategy="fsdp")


def take_steps(run: cargobike.torch.Prepared) -> None:
    for step in range(3):
        run.optimizer.zero_grad()
        run.model(torch.full((4, 8), float(step))).square().sum().backward()
        run.optimizer.step()


def difference(one: Any, two: Any) -> float:
    pairs = zip(one.model.parameters(), two.model.parameters(), strict=True)
    return max(float((a.full_tensor() - b.full_tensor()).detach().abs().max()) for a, b in pairs)


def train() -> dict[str, float]:
    run = make(seed=0)
    take_steps(run)
    trial.checkpoint.save_sharded(run.sharded_state(), step=7)
    other = make(seed=1)
    before = difference(run, other)
    state = other.sharded_state()
    step = trial.checkpoint.load_sharded(state)
    assert step == 7
    other.load_sharded(state)
    take_steps(run)
    take_steps(other)  # the optimizer's state has come along, too
    return {"before": before, "after": difference(run, other)}


def test_parts_are_saved_and_put_together_again() -> None:
    result = experiment.allreduce(train, workers=2, metric="after", quiet=True)
    for values in result.values:
        assert values["before"] > 0.01
        assert values["after"] == 0.0
