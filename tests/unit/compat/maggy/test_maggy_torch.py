"""Maggy's distributed training in torch, on processors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.utils.data

from cargobike import trial
from cargobike.compat.maggy import experiment
from cargobike.compat.maggy.config import TorchDistributedConfig
from cargobike.compat.maggy.running.torch_ranks import Share, number_of

QUIET: dict[str, Any] = {"quiet": True, "seed": 1, "engine": "local"}


def train(module: Any, train_set: Any, test_set: Any, hparams: dict[str, Any], reporter: Any) -> dict[str, float]:
    torch.manual_seed(trial.rank)
    model = module(**hparams)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(train_set, batch_size=2, shuffle=True)
    assert isinstance(loader, torch.utils.data.dataloader.DataLoader)
    seen = 0
    for epoch in range(4):
        for x, y in loader:
            seen += len(x)
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
        reporter.broadcast(loss.item(), epoch)
    tested = sum(len(x) for x, _ in torch.utils.data.DataLoader(test_set, batch_size=4))
    weight = next(iter(model.parameters()))
    whole = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
    local = weight.to_local().numel() if hasattr(weight, "to_local") else weight.numel()
    return {
        "metric": float(trial.rank),
        "seen": seen,
        "tested": tested,
        "weights": float(whole.detach().sum()),
        "local": local,
    }


def config(**named: Any) -> TorchDistributedConfig:
    x = torch.linspace(-1, 1, 10).view(-1, 1).repeat(1, 4)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    return TorchDistributedConfig(
        torch.nn.Linear, train_set=data, test_set=data, hparams={"in_features": 4, "out_features": 2}, **named
    )


@pytest.mark.parametrize("level", [0, 3])
def test_ranks_share_the_data_and_agree_on_the_weights(level: int) -> None:
    result = experiment.lagom(train, config(zero_lvl=level), workers=2, **QUIET)
    first, second = result["values"]
    assert result["test result"] == 0.5
    assert first["weights"] == pytest.approx(second["weights"])
    assert first["seen"] == second["seen"] == 4 * 5
    assert first["tested"] == second["tested"] == 10
    assert first["local"] == (8 if level == 0 else 4)


def test_a_single_process_computes_what_it_computed_before() -> None:
    result = experiment.lagom(train, config(mixed_precision=True), workers=1, **QUIET)
    assert (result["test result"], result["values"][0]["seen"]) == (0.0, 40)


def test_a_share_is_as_long_in_every_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = torch.utils.data.TensorDataset(torch.arange(7))
    whole.classes = ["a", "b"]  # type: ignore[attr-defined,unused-ignore]
    shares = []
    for rank in range(3):
        monkeypatch.setattr(trial, "rank", rank, raising=False)
        monkeypatch.setattr(trial, "world_size", 3, raising=False)
        share = Share(whole)
        assert len(share) == 3
        assert share.classes == ["a", "b"]
        shares.append([int(share[index][0]) for index in range(3)])
        with pytest.raises(IndexError):
            share[3]
    assert shares == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]


def test_other_forms_of_the_configuration() -> None:
    given = TorchDistributedConfig(torch.nn.Linear, [1, 2], name="of 1.1")
    assert (given.dataset, given.train_set) == ([1, 2], None)
    with pytest.raises(TypeError, match="not a model; the ranks make it"):
        experiment.lagom(train, TorchDistributedConfig(torch.nn.Linear(1, 1)), workers=1, **QUIET)
    assert number_of({"loss": 0.0}) == 0.0
    assert number_of("text") is None
