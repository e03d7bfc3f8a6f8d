"""States fit every strategy and any number of ranks; compression and low communication reach what plain DDP reaches."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import cargobike.torch
from cargobike.core.errors import InvalidInputError
from support.digit_loops import digits, fingerprint, network, train_digits
from support.rank_host import RankHost


def train_half(path: str, strategy: str, *, load: bool, save: bool) -> float:
    """Train 40 steps on the same batches in every rank; the state comes from a file, or goes there."""
    data, _ = digits()
    model = network(seed=0 if not load else 7)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    run = cargobike.torch.prepare(model, optimizer, DataLoader(data, batch_size=20), strategy=strategy)
    if load:
        run.load(pickle.loads(Path(path).read_bytes()))
        assert run.loader.epoch == 3
    x, y = data.tensors
    for step in range(40):
        run.optimizer.zero_grad()
        nn.functional.cross_entropy(run.model(x[step * 30 :][:30]), y[step * 30 :][:30]).backward()
        run.optimizer.step()
    if save:
        run.loader.set_epoch(3)
        state = run.state()
        assert bool(state) is run.group.is_main
        if state:
            Path(path).write_bytes(pickle.dumps(state))
    return fingerprint(run.plain_model)


def test_a_state_goes_on_under_every_strategy_and_alone(host: RankHost, tmp_path: Path) -> None:
    whole = {}
    for strategy in ("ddp", "fsdp", "zero1"):
        path = str(tmp_path / strategy)
        host.ranks(train_half, path=path, strategy=strategy, load=False, save=True)
        whole[strategy] = path
    alone = [train_half(path, "ddp", load=True, save=False) for path in whole.values()]
    assert alone == pytest.approx([alone[0]] * 3, rel=1e-4)
    for strategy in ("fsdp", "zero1"):
        other = whole["zero1" if strategy == "fsdp" else "fsdp"]
        ranks = host.ranks(train_half, path=other, strategy=strategy, load=True, save=False)
        assert ranks == pytest.approx([alone[0]] * 2, rel=1e-4)


def test_something_else_is_no_state() -> None:
    run = cargobike.torch.prepare(network())
    with pytest.raises(InvalidInputError, match="it has no 'model'"):
        run.load({})


def test_every_compression_reaches_nearly_what_plain_gradients_reach(host: RankHost) -> None:
    options: dict[str, Any] = {"epochs": 6, "lr": 0.4}
    plain = host.ranks(train_digits, **options)[0]
    assert plain["accuracy"] > 0.87
    ratios = {"bf16": 2, "fp16": 2, "powersgd": 4, "topk": 50}
    for name, ratio in ratios.items():
        ranks = host.ranks(train_digits, compression=name, **options)
        assert ranks[0]["weights"] == ranks[1]["weights"]
        assert ranks[0]["accuracy"] > plain["accuracy"] - 0.06, name
        assert ranks[0]["raw"] / ranks[0]["sent"] >= ratio, name
        assert ranks[0]["raw"] == plain["raw"]


def test_few_exchanges_reach_nearly_what_ddp_reaches(host: RankHost) -> None:
    options: dict[str, Any] = {"epochs": 6, "lr": 0.2}
    plain = host.ranks(train_digits, **options)[0]
    for name, every in (("local_sgd", 11), ("diloco", 22)):
        ranks = host.ranks(train_digits, strategy=name, sync_every=every, **options)
        assert ranks[0]["weights"] == ranks[1]["weights"]
        assert ranks[0]["rounds"] == plain["steps"] // every
        assert ranks[0]["sent"] * every == plain["sent"]
        assert ranks[0]["accuracy"] > plain["accuracy"] - 0.03, name
