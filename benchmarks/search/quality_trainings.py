"""More learning curves of real trainings: linear models by stochastic gradient descent, and small convolutions.

As in `quality_curves`: every configuration of a lattice is trained once, and kept.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from quality_curves import EPOCHS, CurveSet, Data, Floats, _known, _made


def _linear(data: Data, lattice: dict[str, list[float]], loss: str) -> Floats:
    """Train linear classifiers side by side; the rate falls by a power of the steps done."""
    x, y, x_test, y_test = data
    columns = {
        name: np.array(column)[:, None, None]
        for name, column in zip(lattice, zip(*itertools.product(*lattice.values()), strict=True), strict=True)
    }
    count, outputs = len(columns["rate"]), int(max(y.max(), y_test.max())) + 1
    x, x_test = (np.hstack([rows, np.ones((len(rows), 1))]) for rows in (x, x_test))
    weights = np.zeros((count, x.shape[1], outputs))
    move = np.zeros_like(weights)
    source = np.random.default_rng(5)
    curves, steps = np.empty((count, EPOCHS)), 0
    for epoch in range(EPOCHS):
        for rows in np.array_split(source.permutation(len(x)), len(x) // 16):
            steps += 1
            slope = _chances(x[rows] @ weights) - np.eye(outputs)[y[rows]]
            rate = columns["rate"] / steps ** columns["fall"]
            gradient = x[rows].T @ slope / len(rows) + columns["decay"] * weights
            move = columns["momentum"] * move - rate * gradient
            weights = weights + move
        given = _chances(x_test @ weights)
        curves[:, epoch] = -np.log(given[:, np.arange(len(y_test)), y_test].clip(1e-4)).mean(axis=1)
    return curves


def _chances(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), dtype=np.float64)


def _convolutions(data: Data, lattice: dict[str, list[float]], loss: str) -> Floats:
    """Train networks with two convolutions on images of 8 by 8 points, with Adam."""
    import torch

    torch.set_num_threads(1)
    x, x_test = (torch.tensor(part, dtype=torch.float32).reshape(-1, 1, 8, 8) for part in (data[0], data[2]))
    y, y_test = torch.tensor(data[1]), torch.tensor(data[3])
    found = []
    for chosen in itertools.product(*lattice.values()):
        params: dict[str, Any] = dict(zip(lattice, chosen, strict=True))
        torch.manual_seed(3)
        channels = int(params["channels"])
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, channels, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(channels, 2 * channels, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Dropout(params["dropout"]),
            torch.nn.Linear(32 * channels, 10),
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=params["rate"], weight_decay=params["decay"])
        curve = []
        for _ in range(EPOCHS):
            model.train()
            for rows in torch.randperm(len(x)).split(32):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                curve.append(float(torch.nn.functional.cross_entropy(model(x_test), y_test)))
        found.append(curve)
    return np.array(found)


MORE = [
    CurveSet(
        "linear",
        _made("classification", n_samples=700, n_features=40, n_informative=10, n_classes=3, flip_y=0.1),
        _linear,
        {
            "rate": [float(f"{rate:.3g}") for rate in np.geomspace(1e-3, 3, 9)],
            "fall": [0.0, 0.125, 0.25, 0.375, 0.5],
            "decay": [float(f"{decay:.3g}") for decay in np.geomspace(1e-6, 0.3, 7)],
            "momentum": [0.0, 0.3, 0.6, 0.9],
        },
        "log loss",
    ),
    CurveSet(
        "convolutions",
        _known("digits"),
        _convolutions,
        {
            "rate": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2],
            "channels": [2, 4, 8],
            "dropout": [0.0, 0.25, 0.5],
            "decay": [1e-4, 1e-1],
        },
        "log loss",
    ),
]
