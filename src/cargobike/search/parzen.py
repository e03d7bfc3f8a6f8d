"""Parzen estimators: a density over a space, made of one kernel around each point and a uniform one.

Kernels are products over columns: a truncated Gaussian for numbers, "the same or another" for choices, and
1 for what a point does not have, so that points of different branches of a conditional space share one estimator.
"""

from __future__ import annotations

import math

import numpy as np

from cargobike.search.encoding import Booleans, Encoding, Floats

_SHARPNESS = 0.6
"""Factor on the spread of the points; smaller trusts single points more."""
_NARROWEST = 0.02
"""A kernel narrower than this would only repeat its point."""
_CELL = 0.4
"""Least width of a kernel in cells of a lattice, so that neighbours stay possible."""

_GRID = np.linspace(-6.0, 6.0, 1201)
_BELOW = np.array([0.5 * math.erfc(-z / math.sqrt(2)) for z in _GRID])


class Parzen:
    """A density over the rows of an encoding.

    Args:
        encoding: Says what the columns are.
        points: The rows to put kernels around, NaN where a row has no value; may be none.
        weights: One for each row; `None`: all 1.
        prior: Weight of the uniform kernel.
    """

    def __init__(self, encoding: Encoding, points: Floats, weights: Floats | None = None, prior: float = 1.0) -> None:
        self._encoding = encoding
        self._has: Booleans = ~np.isnan(points)
        self._is_full = bool(self._has.all())
        self._points = points if self._is_full else np.where(self._has, points, 0.5)
        self._known = self._has.sum(axis=0)
        self._widths = self._spread()
        # Laplace: a choice seen in all n points has probability (n + 1) / (n + count).
        self._change = {j: (count - 1) / (int(self._known[j]) + count) for j, count in encoding.choices}
        total = np.full(len(points) + 1, prior)
        total[:-1] = 1.0 if weights is None else weights * (len(points) / weights.sum())
        self._shares = total / total.sum()
        self._kernels = self._expand_full() if self._is_full else self._expand()

    def _spread(self) -> Floats:
        """Return kernel widths: the points' spread, one uniform point mixed in, narrowing as they get more."""
        counted = np.maximum(self._known, 1)
        if self._is_full:
            squares = self._points.var(axis=0) * counted if len(self._points) else 0.0
        else:
            middle = np.where(self._has, self._points, 0.0).sum(axis=0) / counted
            squares = np.where(self._has, (self._points - middle) ** 2, 0.0).sum(axis=0)
        widths = _SHARPNESS * np.sqrt((squares + 1 / 12) / (self._known + 1)) * counted**-0.2
        return np.asarray(np.minimum(np.maximum(widths, np.maximum(_NARROWEST, _CELL / self._encoding.counts)), 1.0))

    # An exponent, -(x - m)² / 2w², is written as a polynomial of x, so that one product evaluates all kernels at all
    # places. Where every point has every column, the square of x is the same for all of them and stays outside.

    def _expand_full(self) -> Floats:
        width = self._widths[self._encoding.numbers]
        scaled = self._points[:, self._encoding.numbers] / width
        inside = _roughly_below(1.0 / width - scaled) - _roughly_below(-scaled)
        kernels = np.empty((len(scaled), len(width) + 1))
        kernels[:, :-1] = scaled / width
        kernels[:, -1] = np.log(self._shares[:-1] / inside.prod(axis=1)) - 0.5 * np.einsum("ij,ij->i", scaled, scaled)
        kernels[:, -1] -= np.log(width * math.sqrt(2 * math.pi)).sum()
        return kernels

    def _expand(self) -> Floats:
        has, width = self._has[:, self._encoding.numbers], self._widths[self._encoding.numbers]
        scaled = self._points[:, self._encoding.numbers] / width
        inside = _roughly_below(1.0 / width - scaled) - _roughly_below(-scaled)
        constant = -0.5 * scaled * scaled - np.log(inside * (width * math.sqrt(2 * math.pi)))
        shares = np.log(self._shares[:-1])
        return np.column_stack([-0.5 * has / width**2, has * (scaled / width), has * constant, shares])

    def log_density(self, rows: Floats) -> Floats:
        """Return the logarithm of the density at each row, relative to that of a uniform draw."""
        has = ~np.isnan(rows)
        place = np.where(has, rows, 0.0)[:, self._encoding.numbers]
        logs = np.empty((len(rows), len(self._points) + 1))
        own, ones = logs[:, :-1], np.ones((len(rows), 1))
        is_full = self._is_full and bool(has.all())
        if is_full:
            np.matmul(np.concatenate([place, ones], axis=1), self._kernels.T, out=own)
            own -= 0.5 * ((place / self._widths[self._encoding.numbers]) ** 2).sum(axis=1, keepdims=True)
        else:
            kernels = self._expand() if self._is_full else self._kernels
            powers = [place * place, place, has[:, self._encoding.numbers], ones]
            np.matmul(np.concatenate(powers, axis=1), kernels.T, out=own)
        for j, count in self._encoding.choices:
            change = self._change[j]
            same, other = math.log((1 - change) * count), math.log(max(change, 1e-12) * count / max(count - 1, 1))
            factor = (rows[:, j, None] == self._points[:, j]) * (same - other) + other
            own += factor if is_full else factor * (has[:, j, None] & self._has[:, j])
        logs[:, -1] = math.log(self._shares[-1])
        highest = logs.max(axis=1)
        logs -= highest[:, None]
        return np.asarray(highest + np.log(np.exp(logs, out=logs).sum(axis=1)), dtype=np.float64)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw rows that exist in the space."""
        kernels = np.searchsorted(np.cumsum(self._shares), rng.random(count)).clip(max=len(self._points))
        draws = rng.random((count, self._encoding.width))
        uniform = kernels == len(self._points)
        kernels = np.where(uniform, 0, kernels)
        if not len(self._points):
            return self._encoding.settle(draws)
        has, middle = self._has[kernels], self._points[kernels]
        has, middle = self._borrow(has, middle, rng)
        has &= ~uniform[:, None]
        low, high = _below(-middle / self._widths), _below((1.0 - middle) / self._widths)
        near = middle + self._widths * np.interp(low + draws * (high - low), _BELOW, _GRID)
        for j, options in self._encoding.choices:
            # The draw decides whether to change, and what is left of it what to change to.
            changed = draws[:, j] < self._change[j]
            other = np.floor(draws[:, j] / max(self._change[j], 1e-12) * (options - 1)).clip(0, max(options - 2, 0))
            own = np.floor(middle[:, j] * options)
            other += other >= own
            near[:, j] = np.where(changed, (other + 0.5) / options, middle[:, j])
        return self._encoding.settle(np.where(has, near, draws))

    def _borrow(self, has: Booleans, middle: Floats, rng: np.random.Generator) -> tuple[Booleans, Floats]:
        """Fill what a drawn kernel does not have from a kernel that has it, or leave it to chance as often as one."""
        for j in np.flatnonzero(~has.all(axis=0)):
            donors = self._points[self._has[:, j], j]
            taken = rng.integers(0, len(donors) + 1, size=len(has))
            lends = ~has[:, j] & (taken < len(donors))
            if lends.any():
                middle[lends, j] = donors[taken[lends]]
                has[:, j] |= lends
        return has, middle


def _roughly_below(z: Floats) -> Floats:
    """As `_below`, to three digits and several times as fast: enough for the mass that a border cuts off."""
    return np.asarray(0.5 + 0.5 * np.tanh(z * (0.7978845608 + 0.0356774081 * (z * z))), dtype=np.float64)


def _below(z: Floats) -> Floats:
    return np.asarray(np.interp(z, _GRID, _BELOW), dtype=np.float64)
