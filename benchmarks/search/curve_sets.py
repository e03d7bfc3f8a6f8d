"""Learning curves to compare schedules on: drawn from a formula, and of small networks that were really trained."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

Curves = list[list[float]]
"""The accuracy of each configuration after each epoch."""

CONFIGURATIONS = 60
EPOCHS = 27


def drawn_set(seed: int, configurations: int = CONFIGURATIONS, epochs: int = EPOCHS) -> Curves:
    """Return curves that rise by a power law to different heights, at different rates, with noise and some late risers.

    Heights are skewed as in practice: many are mediocre, few are good, the best lie close together.
    """
    rng = random.Random(f"curves {seed}")
    found: Curves = []
    for _ in range(configurations):
        height = 0.95 * rng.betavariate(4, 1.6)
        rate = math.exp(rng.gauss(-0.1, 0.45))
        delay = rng.choice([0.0, 0.0, 0.0, 1.0, 3.0])
        noise = 0.012 * rng.uniform(0.3, 1.0)
        found.append(
            [
                height * max(0.02, 1 - (1 + max(0.0, epoch - delay)) ** -rate) + rng.gauss(0, noise)
                for epoch in range(1, epochs + 1)
            ]
        )
    return found


def trained_sets(count: int, cache: Path, size: int = CONFIGURATIONS) -> list[Curves]:
    """Return sets whose curves are those of networks trained on scikit-learn's wine, breast cancer and digits data.

    Each set draws `size` out of a pool of 600 networks for one of the data sets. Training the pools
    takes some minutes, once; they are kept in `cache`.
    """
    names = ("wine", "breast_cancer", "digits")
    pools = [_pool(name, cache) for name in names]
    rng = random.Random("sets")
    return [rng.sample(pools[index % len(pools)], size) for index in range(count)]


def _pool(name: str, cache: Path, configurations: int = 600) -> Curves:
    path = cache / f"{name}-{configurations}-{EPOCHS}.json"
    if path.exists():
        stored: Curves = json.loads(path.read_text())
        return stored
    pool = _train(name, configurations)
    cache.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(pool))
    return pool


def _train(name: str, configurations: int) -> Curves:
    import numpy as np
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.4, random_state=0, stratify=y)
    scaler = StandardScaler().fit(x_train)
    data = scaler.transform(x_train), y_train, scaler.transform(x_test), y_test
    rng = random.Random(f"networks {name}")
    with np.errstate(all="ignore"):
        return [_curve(rng, number, data) for number in range(configurations)]


def _curve(rng: random.Random, seed: int, data: tuple[Any, Any, Any, Any]) -> list[float]:
    """Train one network with one hidden layer, by stochastic gradient descent with momentum."""
    import numpy as np

    x, y, x_test, y_test = data
    width, batch = rng.choice([4, 8, 16, 32, 64]), rng.choice([8, 16, 32, 64])
    rate, decay = 10 ** rng.uniform(-4, 0.3), 10 ** rng.uniform(-6, -1)
    momentum, scale = rng.choice([0.0, 0.5, 0.9]), 10 ** rng.uniform(-1.5, 0.5)
    source = np.random.default_rng(seed)
    layers = [
        source.normal(0, scale / np.sqrt(x.shape[1]), (x.shape[1] + 1, width)),
        source.normal(0, scale / np.sqrt(width), (width + 1, int(y.max()) + 1)),
    ]
    moves = [np.zeros_like(layer) for layer in layers]

    def forward(rows: Any) -> tuple[Any, Any, Any]:
        first = np.hstack([rows, np.ones((len(rows), 1))])
        second = np.hstack([np.tanh(first @ layers[0]), np.ones((len(rows), 1))])
        scores = second @ layers[1]
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        return first, second, chances / chances.sum(axis=1, keepdims=True)

    curve = []
    for _ in range(EPOCHS):
        order = source.permutation(len(x))
        for start in range(0, len(x), batch):
            rows = order[start : start + batch]
            first, second, slope = forward(x[rows])
            slope[np.arange(len(rows)), y[rows]] -= 1
            slope /= len(rows)
            inner = (slope @ layers[1][:-1].T) * (1 - second[:, :-1] ** 2)
            for which, gradient in enumerate((first.T @ inner, second.T @ slope)):
                moves[which] = momentum * moves[which] - rate * (gradient + decay * layers[which])
                layers[which] += moves[which]
        # The mean probability of the right class separates what accuracy on a few hundred rows leaves equal.
        right = forward(x_test)[2][np.arange(len(y_test)), y_test]
        curve.append(float(np.nan_to_num(right.mean())))
    return curve
