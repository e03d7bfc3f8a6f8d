"""Smooth surrogates of recorded learning curves: every point of a continuous space has one, near points near ones.

The curves of some hundred recorded configurations, as logarithms, are a mean and a few shapes, each by an amount that a
Gaussian process knows everywhere. The wiggles that were left out come back as noise of their size, the same each time
for the same configuration; the regret is that of the curve without them.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quality_curves import EPOCHS, CurveTable

from cargobike import Searchspace

Floats = NDArray[np.float64]

_RECORDED = 250
_SHAPES = 4
_LOW = 1e-3
"""Added before logarithms are taken: an error of 0 has one."""


class Surrogate:
    """Curves over a continuous space, fitted to those of a table.

    Args:
        table: What was recorded.
        cache: A file to keep the fit in.
    """

    def __init__(self, table: CurveTable, cache: Path) -> None:
        varied = {name: values for name, values in table.lattice.items() if len(values) > 1}
        table = CurveTable(varied, table.losses.reshape(*(len(values) for values in varied.values()), EPOCHS))
        self.lattice = varied
        self._fit(table, cache)
        self.space = Searchspace({name: _range(values) for name, values in self.lattice.items()})

    def _fit(self, table: CurveTable, cache: Path) -> None:
        recipe = json.dumps(
            ["surrogate 2", table.lattice, _RECORDED, hashlib.sha256(table.losses.tobytes()).hexdigest()]
        )
        if not (cache.exists() and str(np.load(cache)["recipe"]) == recipe):
            np.savez_compressed(cache, recipe=recipe, **_fitted(table))
        with np.load(cache) as kept:
            self._points, self._lengths, self._weights = kept["points"], kept["lengths"], kept["weights"]
            self._mean, self._shapes, self._noise = kept["mean"], kept["shapes"], kept["noise"]
            self._offsets, self.explained = kept["offsets"], float(kept["explained"])

    def smooth(self, units: Floats) -> Floats:
        """Return the curves of some points of the unit cube, without noise."""
        amounts = np.stack(
            [
                offset + _matern(_squares(units / lengths, self._points / lengths)) @ weights
                for lengths, weights, offset in zip(self._lengths, self._weights, self._offsets, strict=True)
            ],
            axis=1,
        )
        return np.asarray(np.exp(self._mean + amounts @ self._shapes), dtype=np.float64)

    def units(self, params: dict[str, Any]) -> Floats:
        """Return where parameters lie in the unit cube."""
        return np.array([[self.space[name].to_unit(params[name]) for name in self.lattice]])

    def score(self, params: dict[str, Any]) -> float:
        """Return the loss that a configuration ends with, without noise."""
        return float(self.smooth(self.units(params))[0, -1])

    def curve(self, params: dict[str, Any]) -> list[float]:
        """Return the losses that are reported."""
        seed = int.from_bytes(hashlib.sha256(repr(sorted(params.items())).encode()).digest()[:8], "big")
        wiggles = np.random.default_rng(seed).normal(size=EPOCHS) * self._noise
        return [float(loss) for loss in self.smooth(self.units(params))[0] * np.exp(wiggles)]

    def extremes(self) -> tuple[float, float]:
        """Return the least and the median final loss, the first by a dense look and refinement around what it finds."""
        rng = np.random.default_rng(0)
        units = rng.random((20_000, len(self.lattice)))
        ends = np.concatenate([self.smooth(part)[:, -1] for part in np.array_split(units, 20)])
        typical = float(np.median(ends))
        best = units[np.argsort(ends)[:20]]
        least = float(ends.min())
        for width in (0.1, 0.03, 0.01, 0.003):
            tried = (best[:, None, :] + width * rng.normal(size=(20, 200, best.shape[1]))).clip(0, 1)
            tried = np.concatenate([best, tried.reshape(-1, best.shape[1])])
            ends = self.smooth(tried)[:, -1]
            best = tried[np.argsort(ends)[:20]]
            least = float(ends.min())
        return least, typical


def _range(values: list[float]) -> tuple[Any, ...]:
    low, high = float(min(values)), float(max(values))
    return ("DOUBLE", [low, high], "log") if low > 0 and high / low >= 8 else ("DOUBLE", [low, high])


def _fitted(table: CurveTable) -> dict[str, Any]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    shape = table.losses.shape[:-1]
    order = np.random.default_rng(1).permutation(math.prod(shape))
    count = min(_RECORDED, len(order) * 3 // 4)
    chosen, checked = order[:count], order[count : count + 200]
    space = Searchspace({name: _range(values) for name, values in table.lattice.items()})

    def points_of(indices: NDArray[np.int64]) -> Floats:
        places = np.stack(np.unravel_index(indices, shape), axis=1)
        lists = list(table.lattice.items())
        return np.array(
            [
                [space[name].to_unit(float(values[at])) for (name, values), at in zip(lists, place, strict=True)]
                for place in places
            ]
        )

    flat = table.losses.reshape(-1, EPOCHS)
    # Those that blew up are as bad as the worst of the usual ones: how bad they are says nothing about the rest.
    logs = np.log(np.minimum(flat, np.quantile(flat[:, :2], 0.9)) + _LOW)
    curves = np.stack([_smoothed(curve) for curve in logs[chosen]])
    mean = curves.mean(axis=0)
    shapes = np.linalg.svd(curves - mean, full_matrices=False)[2][:_SHAPES]
    amounts = (curves - mean) @ shapes.T
    points = points_of(chosen)
    lengths, weights, offsets = [], [], []
    for column in amounts.T:
        kernel = Matern(np.full(points.shape[1], 0.5), (0.25, 20.0), nu=2.5) + WhiteKernel(0.05, (1e-3, 1.0))
        scale = column.std()
        process = GaussianProcessRegressor(kernel, normalize_y=False, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(points, (column - column.mean()) / scale)
        lengths.append(process.kernel_.k1.length_scale)
        weights.append(process.alpha_ * scale)
        offsets.append(column.mean())
    found = {
        "points": points,
        "lengths": np.array(lengths),
        "weights": np.array(weights),
        "offsets": np.array(offsets),
        "mean": mean,
        "shapes": shapes,
        "noise": (logs[chosen] - curves).std(axis=0),
    }
    apart = points_of(checked)
    told = sum(
        (offset + _matern(_squares(apart / length, points / length)) @ weight)[:, None] * shape[-1]
        for length, weight, offset, shape in zip(lengths, weights, offsets, shapes, strict=True)
    )
    ends = logs[checked][:, -1]
    found["explained"] = np.array(1 - np.var(ends - mean[-1] - told[:, 0]) / np.var(ends))
    return found


def _smoothed(curve: Floats) -> Floats:
    """Return a curve without its wiggles: the mean of neighbours, of more of them the later."""
    sums = np.concatenate([[0.0], np.cumsum(curve)])
    at = np.arange(len(curve))
    reach = np.minimum(np.minimum(at // 3, len(curve) - 1 - at), 3)
    return np.asarray((sums[at + reach + 1] - sums[at - reach]) / (2 * reach + 1), dtype=np.float64)


def _squares(one: Floats, other: Floats) -> Floats:
    return np.asarray(((one[:, None, :] - other[None, :, :]) ** 2).sum(axis=2), dtype=np.float64)


def _matern(squares: Floats) -> Floats:
    distance = np.sqrt(5.0 * squares)
    return np.asarray((1 + distance + distance * distance / 3) * np.exp(-distance), dtype=np.float64)
