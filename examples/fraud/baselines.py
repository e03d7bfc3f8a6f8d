"""Two plain ways to find what is unusual, for comparison: an isolation forest and an autoencoder."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from gan import BATCH, METRIC
from scoring import Autoencoder, Detector, Forest, Scale, average_precision, signals_of, weights_of
from signals import SIGNALS

from cargobike import features, trial

FOREST_SPACE = {"trees": [100], "sample": [256, 1024, 4096]}
AUTOENCODER_SPACE = {"lr": [1e-3, 3e-3], "code": [4, 8]}


def train_forest(data: Any, held_out: str, trees: int, sample: int) -> dict[str, float]:
    """Grow an isolation forest on honest payments."""
    from sklearn.ensemble import IsolationForest

    rows = _all_rows(data)
    scale = Scale(rows)
    forest = IsolationForest(n_estimators=trees, max_samples=min(sample, len(rows)), random_state=trial.seed % 2**32)
    return _judged(scale, Forest(forest.fit(scale(rows))), held_out)


def train_autoencoder(data: Any, held_out: str, lr: float, code: int, steps: int = 2500) -> dict[str, float]:
    """Teach a network to draw honest payments again after they went through a narrow code."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(trial.seed)
    signals = _all_rows(data)
    scale = Scale(signals)
    rows = torch.tensor(scale(signals), dtype=torch.float32)
    sizes = [len(SIGNALS), 64, code, 64]
    parts: list[Any] = []
    for before, after in itertools.pairwise(sizes):
        parts += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
    network = nn.Sequential(*parts, nn.Linear(64, len(SIGNALS)))
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    for _ in range(steps):
        batch = rows[torch.randint(len(rows), (BATCH,))]
        loss = nn.functional.mse_loss(network(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return _judged(scale, Autoencoder(weights_of(network)), held_out)


def detector(checkpoint: dict[str, Any], honest: np.ndarray[Any, Any]) -> Detector:
    """Return the model that a trial has left."""
    return Detector(checkpoint["scale"], checkpoint["suspect"], checkpoint["scale"](honest))


def _all_rows(data: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([batch["x"] for batch in data]).astype(np.float64)


def _judged(scale: Scale, suspect: Any, held_out: str) -> dict[str, float]:
    """Keep a model, and return how well it finds the fraud in the part `tune` of a dataset."""
    judged = features.training_dataset(held_out)["tune"].to_arrow()
    trial.checkpoint.save({"scale": scale, "suspect": suspect})
    return {METRIC: average_precision(judged["is_fraud"].to_numpy(), suspect(scale(signals_of(judged))))}
