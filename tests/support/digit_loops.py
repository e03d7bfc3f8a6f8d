"""Train functions that the tests run in ranks: plain loops over small data."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import cargobike.torch


def digits() -> tuple[TensorDataset, TensorDataset]:
    x, y = load_digits(return_X_y=True)
    data, labels = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    return TensorDataset(data[:1400], labels[:1400]), TensorDataset(data[1400:], labels[1400:])


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    model.eval()
    with torch.no_grad():
        inputs, labels = data.tensors
        found = float((model(inputs).argmax(1) == labels).float().mean())
    model.train()
    return found


def fingerprint(model: nn.Module) -> float:
    from torch.distributed.tensor import DTensor

    tensors = [p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()]
    return float(sum((t.detach().double() * torch.arange(1, t.numel() + 1).view_as(t)).sum() for t in tensors))


def train_digits(
    epochs: int = 4, lr: float = 0.1, batch: int = 32, adam: bool = False, **options: Any
) -> dict[str, Any]:
    train, test = digits()
    model = network()
    kind = torch.optim.AdamW if adam else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=lr)
    run = cargobike.torch.prepare(model, optimizer, DataLoader(train, batch_size=batch, shuffle=True), **options)
    model, optimizer, loader = run
    steps = 0
    loss = torch.tensor(0.0)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            steps += 1
    run.sync()
    return {
        "accuracy": accuracy(model, test),
        "loss": cargobike.torch.all_reduce(loss.item()),
        "steps": steps,
        "weights": fingerprint(run.plain_model),
        "uneven": run.uneven,
        "sent": run.traffic.sent_bytes,
        "raw": run.traffic.raw_bytes,
        "rounds": run.traffic.rounds,
        "kind": type(run.model).__name__,
    }
