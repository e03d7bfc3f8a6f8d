"""Tables of learning curves: every configuration of a lattice, really trained for 27 epochs, once, and kept.

Networks with one hidden layer on data of scikit-learn and on generated data, and boosted trees whose epochs are trees.
All of it is seeded: who deletes the cache gets the same tables again, up to the rounding of another processor.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPOCHS = 27
Floats = NDArray[np.float64]
Data = tuple[Floats, Any, Floats, Any]


@dataclass(frozen=True)
class CurveTable:
    """A lattice and the losses of its configurations.

    Attributes:
        lattice: The values of each parameter, in order.
        losses: For each configuration, by the positions of its values, the loss after each epoch.
    """

    lattice: dict[str, list[float]]
    losses: Floats

    def curve(self, params: dict[str, Any]) -> list[float]:
        place = tuple(values.index(params[name]) for name, values in self.lattice.items())
        return [float(loss) for loss in self.losses[place]]


@dataclass(frozen=True)
class CurveSet:
    """How a table is made."""

    name: str
    data: Callable[[], Data]
    train: Callable[[Data, dict[str, list[float]], str], Floats]
    lattice: dict[str, list[float]] = field(default_factory=dict)
    loss: str = "error"
    held_out: bool = False
    as_table: bool = False


def load(which: CurveSet, cache: Path) -> CurveTable:
    """Return a table, from the cache or made now."""
    path = cache / f"table-{which.name}.npz"
    recipe = json.dumps([which.name, which.loss, which.lattice, EPOCHS])
    if path.exists():
        with np.load(path) as stored:
            if str(stored["recipe"]) == recipe:
                return CurveTable(which.lattice, stored["losses"])
    with np.errstate(all="ignore"):
        losses = which.train(which.data(), which.lattice, which.loss)
    shape = tuple(len(values) for values in which.lattice.values())
    losses = np.nan_to_num(losses, nan=1e3, posinf=1e3).clip(max=1e3).reshape(*shape, EPOCHS)
    cache.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, losses=losses, recipe=recipe)
    return CurveTable(which.lattice, losses)


# -- data --------------------------------------------------------------------------------------------------------------


def _split(x: Floats, y: Any, *, rows: int = 700) -> Data:
    """Halve shuffled rows into those to learn from and those to judge by, and scale both by the first."""
    order = np.random.default_rng(0).permutation(len(x))[:rows]
    x, y = x[order], y[order]
    half = len(x) * 3 // 5
    middle, spread = x[:half].mean(axis=0), x[:half].std(axis=0) + 1e-9
    x = (x - middle) / spread
    if y.dtype.kind == "f":
        y = (y - y[:half].mean()) / y[:half].std()
    return x[:half], y[:half], x[half:], y[half:]


def _known(name: str) -> Callable[[], Data]:
    def make() -> Data:
        from sklearn import datasets

        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return _split(x, y)

    return make


def _made(kind: str, **options: Any) -> Callable[[], Data]:
    def make() -> Data:
        from sklearn import datasets

        x, y = getattr(datasets, f"make_{kind}")(random_state=3, **options)
        return _split(x, y)

    return make


# -- models ------------------------------------------------------------------------------------------------------------


def _networks(data: Data, lattice: dict[str, list[float]], loss: str) -> Floats:
    """Train networks; those that differ in neither width nor batch are trained side by side, in one product."""
    names = list(lattice)
    shape = [len(lattice[name]) for name in names]
    found = np.empty((*shape, EPOCHS))
    apart: list[str] = [name for name in ("width", "batch") if name in lattice]
    beside = [name for name in names if name not in apart]
    for chosen in itertools.product(*(range(len(lattice[name])) for name in apart)):
        fixed: dict[str, float] = {name: lattice[name][index] for name, index in zip(apart, chosen, strict=True)}
        rest = list(itertools.product(*(lattice[name] for name in beside)))
        columns = {name: np.array(column) for name, column in zip(beside, zip(*rest, strict=True), strict=True)}
        curves = _side_by_side(data, fixed, columns, len(rest), loss)
        index: list[Any] = [slice(None)] * len(names)
        for name, position in zip(apart, chosen, strict=True):
            index[names.index(name)] = position
        found[tuple(index)] = curves.reshape(*(len(lattice[name]) for name in beside), EPOCHS)
    return found


def _side_by_side(data: Data, fixed: dict[str, float], columns: dict[str, Floats], count: int, loss: str) -> Floats:
    x, y, x_test, y_test = data
    is_regression = y.dtype.kind == "f"
    outputs = 1 if is_regression else int(max(y.max(), y_test.max())) + 1
    width, batch = int(fixed.get("width", 16)), int(fixed.get("batch", 32))
    rate = columns["rate"][:, None, None]
    momentum = columns.get("momentum", np.full(count, 0.9))[:, None, None]
    decay = columns.get("decay", np.full(count, 1e-4))[:, None, None]
    scale = columns.get("scale", np.ones(count))[:, None, None]
    source = np.random.default_rng([width, batch])
    layers = [
        scale * source.normal(0, 1 / np.sqrt(x.shape[1]), (1, x.shape[1] + 1, width)),
        scale * source.normal(0, 1 / np.sqrt(width), (1, width + 1, outputs)),
    ]
    moves = [np.zeros_like(layer) for layer in layers]
    targets = y[:, None] if is_regression else np.eye(outputs)[y]

    def forward(rows: Floats) -> tuple[Floats, Floats, Floats]:
        first = np.hstack([rows, np.ones((len(rows), 1))])
        hidden = np.tanh(first @ layers[0])
        second = np.concatenate([hidden, np.ones((count, len(rows), 1))], axis=2)
        scores = second @ layers[1]
        if is_regression:
            return first, second, scores
        chances = np.exp(scores - scores.max(axis=2, keepdims=True))
        return first, second, chances / chances.sum(axis=2, keepdims=True)

    curves = np.empty((count, EPOCHS))
    for epoch in range(EPOCHS):
        order = source.permutation(len(x))
        for start in range(0, len(x), batch):
            rows = order[start : start + batch]
            first, second, given = forward(x[rows])
            slope = (given - targets[rows]) / len(rows)
            inner = (slope @ layers[1][:, :-1].transpose(0, 2, 1)) * (1 - second[:, :, :-1] ** 2)
            for which, gradient in enumerate((first.T @ inner, second.transpose(0, 2, 1) @ slope)):
                moves[which] = momentum * moves[which] - rate * (gradient + decay * layers[which])
                layers[which] = layers[which] + moves[which]
        given = forward(x_test)[2]
        if is_regression:
            curves[:, epoch] = ((given[:, :, 0] - y_test) ** 2).mean(axis=1).clip(max=10)
        elif loss == "error":
            curves[:, epoch] = (given.argmax(axis=2) != y_test).mean(axis=1)
        else:
            right = given[:, np.arange(len(y_test)), y_test]
            curves[:, epoch] = -np.log(right.clip(1e-4)).mean(axis=1)
    return curves


def _trees(data: Data, lattice: dict[str, list[float]], loss: str) -> Floats:
    """Boost trees; an epoch is 4 of them."""
    from sklearn import ensemble

    x, y, x_test, y_test = data
    is_regression = y.dtype.kind == "f"
    kind = ensemble.GradientBoostingRegressor if is_regression else ensemble.GradientBoostingClassifier
    found = []
    for chosen in itertools.product(*lattice.values()):
        params = dict(zip(lattice, chosen, strict=True))
        model = kind(
            n_estimators=4 * EPOCHS,
            learning_rate=params["rate"],
            max_depth=int(params["depth"]),
            subsample=params["subsample"],
            min_samples_leaf=int(params["leaf"]),
            max_features=params["features"],
            random_state=0,
        ).fit(x, y)
        stages = list(model.staged_predict(x_test))[3::4]
        if is_regression:
            found.append([float(((stage - y_test) ** 2).mean()) for stage in stages])
        else:
            found.append([float((stage != y_test).mean()) for stage in stages])
    return np.array(found)


# -- which -------------------------------------------------------------------------------------------------------------

_RATES = [float(f"{rate:.3g}") for rate in np.geomspace(1e-4, 2, 10)]
_WIDE: dict[str, list[float]] = {
    "rate": _RATES,
    "width": [4, 8, 16, 32, 64],
    "batch": [8, 16, 32, 64],
    "momentum": [0.0, 0.5, 0.9],
    "decay": [1e-6, 1e-4, 1e-2],
}
_DEEP: dict[str, list[float]] = {
    "rate": _RATES,
    "width": [8, 16, 32, 64],
    "batch": [16, 32, 64, 128],
    "momentum": [0.0, 0.5, 0.9],
    "scale": [0.1, 0.5, 2.0],
}
_SMALL: dict[str, list[float]] = {
    "rate": _RATES[1:],
    "width": [4, 16, 64],
    "momentum": [0.0, 0.9],
    "decay": [1e-5, 1e-3, 1e-1],
}
_BOOSTED: dict[str, list[float]] = {
    "rate": [0.01, 0.03, 0.1, 0.3, 0.6, 1.0],
    "depth": [1, 2, 3, 5],
    "subsample": [0.5, 0.8, 1.0],
    "leaf": [1, 5, 20],
    "features": [0.3, 0.6, 1.0],
}
_BOOSTED_FEW: dict[str, list[float]] = _BOOSTED | {"leaf": [5], "features": [0.3, 1.0]}

SETS = [
    CurveSet("wine", _known("wine"), _networks, _WIDE, "log loss"),
    CurveSet("breast_cancer", _known("breast_cancer"), _networks, _WIDE, "log loss"),
    CurveSet("wine, few", _known("wine"), _networks, _SMALL, "log loss"),
    CurveSet(
        "classes",
        _made("classification", n_samples=700, n_features=20, n_informative=8, n_classes=4, class_sep=1.2),
        _networks,
        _DEEP,
        "error",
        as_table=True,
    ),
    CurveSet("friedman", _made("friedman1", n_samples=600, noise=1.0), _networks, _WIDE, "squared"),
    CurveSet("breast_cancer, trees", _known("breast_cancer"), _trees, _BOOSTED, "error"),
    CurveSet("digits", _known("digits"), _networks, _DEEP, "error", held_out=True, as_table=True),
    CurveSet("diabetes", _known("diabetes"), _networks, _WIDE, "squared", held_out=True),
    CurveSet("moons", _made("moons", n_samples=600, noise=0.25), _networks, _SMALL, "log loss", held_out=True),
    CurveSet(
        "friedman, trees", _made("friedman2", n_samples=400, noise=30.0), _trees, _BOOSTED_FEW, "squared", held_out=True
    ),
]
