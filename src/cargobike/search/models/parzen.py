"""Parzen estimators: a density over a space, made of one kernel around each point and a uniform one.

Kernels are products over columns: a truncated Gaussian for numbers, "the same or another" for choices, and
1 for what a point does not have, so that points of different branches of a conditional space share one estimator.

A suggestion asks about two dozen rows, for which a call of NumPy takes longer than what it computes. So columns go
through as few calls as possible, all together, and what several calls need is kept.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cargobike.search.spaces.encoding import Booleans, Encoding, Floats

_SHARPNESS = 0.6
"""Factor on the spread of the points; smaller trusts single points more."""
NARROWEST = 0.02
"""A kernel narrower than this would only repeat its point."""
_CELL = 0.4
"""Least width of a kernel in cells of a lattice, so that neighbours stay possible."""

_REDRAWN = 4
"""How often rows that break constraints are drawn again."""

_GRID = np.linspace(-6.0, 6.0, 1201)
_BELOW = np.array([0.5 * math.erfc(-z / math.sqrt(2)) for z in _GRID])
_ROOT = math.sqrt(2 * math.pi)


class Places:
    """Rows whose density is asked for, in the form that estimators read: made once for all that are asked.

    Args:
        encoding: Says what the columns are.
        rows: The rows, NaN where a row has no value.
    """

    def __init__(self, encoding: Encoding, rows: Floats) -> None:
        self.rows = rows
        self.has = _present(rows)
        self._encoding = encoding
        self.numbers: Floats = (rows if self.has is None else np.where(self.has, rows, 0.0))[:, encoding.numbers]
        self._ones = np.ones((len(rows), 1))
        self.linear = np.concatenate([self.numbers, self._ones], axis=1)

    @cached_property
    def quadratic(self) -> Floats:
        """The squares, the numbers, which of them there are, and 1."""
        has = np.ones_like(self.numbers) if self.has is None else self.has[:, self._encoding.numbers]
        return np.concatenate([self.numbers * self.numbers, self.numbers, has, self._ones], axis=1)


class Parzen:
    """A density over the rows of an encoding.

    Args:
        encoding: Says what the columns are.
        points: The rows to put kernels around, NaN where a row has no value; may be none.
        weights: One for each row; `None`: all 1.
        prior: Weight of the uniform kernel.
        narrowest: Least width of a kernel.
    """

    def __init__(
        self,
        encoding: Encoding,
        points: Floats,
        weights: Floats | None = None,
        prior: float = 1.0,
        narrowest: float = NARROWEST,
    ) -> None:
        self._encoding = encoding
        self._narrowest = narrowest
        self._has = _present(points) if encoding.is_conditional else None
        self._points = points if self._has is None else np.where(self._has, points, 0.5)
        known = len(points) if self._has is None else self._has.sum(axis=0)
        self._widths = self._spread(known)
        self._number_widths: Floats = self._widths[encoding.numbers]
        # Laplace: a choice seen in all n points has probability (n + 1) / (n + count).
        seen = known if isinstance(known, int) else known[encoding.choices]
        self._change: Floats = (encoding.choice_counts - 1) / (seen + encoding.choice_counts)
        total = np.full(len(points) + 1, prior)
        total[:-1] = 1.0 if weights is None else weights * (len(points) / np.add.reduce(weights))
        self._shares = total / np.add.reduce(total)

    def _spread(self, known: int | NDArray[np.intp]) -> Floats:
        """Return kernel widths: the points' spread, one uniform point mixed in, narrowing as they get more."""
        counted = max(known, 1) if isinstance(known, int) else np.maximum(known, 1)
        if self._has is None:
            away = self._points - np.add.reduce(self._points, axis=0) / counted
            squares = np.add.reduce(np.square(away, out=away), axis=0) / counted * counted
        else:
            middle = np.where(self._has, self._points, 0.0).sum(axis=0) / counted
            squares = np.where(self._has, (self._points - middle) ** 2, 0.0).sum(axis=0)
        widths: Floats = _SHARPNESS * np.sqrt((squares + 1 / 12) / (known + 1)) * np.power(counted, -0.2)
        narrowest = np.maximum(self._narrowest, _CELL / self._encoding.counts)
        return np.minimum(np.maximum(widths, narrowest, out=widths), 1.0, out=widths)

    # An exponent, -(x - m)² / 2w², is written as a polynomial of x, so that one product evaluates all kernels at all
    # places. Where every point has every column, the square of x is the same for all of them and stays outside.

    @cached_property
    def _linear(self) -> Floats:
        width = self._number_widths[:, None]
        scaled = self._points.T[self._encoding.numbers]
        scaled /= width
        kernels = np.empty((len(self._points), len(scaled) + 1))
        kernels[:, :-1] = (scaled / width).T
        inside = np.multiply.reduce(_mass_inside(scaled, width), axis=0)
        squares = np.einsum("ij,ij->i", scaled.T, scaled.T)
        kernels[:, -1] = np.log(self._shares[:-1] / inside) - 0.5 * squares
        kernels[:, -1] -= np.add.reduce(np.log(self._number_widths * _ROOT))
        return kernels

    @cached_property
    def _quadratic(self) -> Floats:
        width = self._number_widths[:, None]
        scaled = self._points.T[self._encoding.numbers]
        scaled /= width
        has = np.ones_like(scaled) if self._has is None else self._has.T[self._encoding.numbers]
        constant = -0.5 * scaled * scaled - np.log(_mass_inside(scaled, width) * (width * _ROOT))
        powers = [-0.5 * has / width**2, has * (scaled / width), has * constant]
        return np.column_stack([*(power.T for power in powers), np.log(self._shares[:-1])])

    @cached_property
    def _agreement(self) -> list[tuple[int, float, float]]:
        """The columns of choices, with the logarithms of the factors for the same choice and for another one."""
        found = []
        columns = self._encoding.choices.tolist(), self._change.tolist(), self._encoding.choice_counts.tolist()
        for column, change, count in zip(*columns, strict=True):
            same, other = math.log((1 - change) * count), math.log(max(change, 1e-12) * count / max(count - 1, 1))
            found.append((column, same - other + other, other))
        return found

    def log_density(self, rows: Floats) -> Floats:
        """Return the logarithm of the density at each row, relative to that of a uniform draw."""
        return self.log_density_at(Places(self._encoding, rows))

    def log_density_at(self, places: Places) -> Floats:
        """Return the same for rows that were prepared."""
        logs = np.empty((len(places.rows), len(self._points) + 1))
        own = logs[:, :-1]
        is_full = self._has is None and places.has is None
        if is_full:
            np.matmul(places.linear, self._linear.T, out=own)
            away = places.numbers / self._number_widths
            own -= 0.5 * np.add.reduce(np.square(away, out=away), axis=1, keepdims=True)
        else:
            np.matmul(places.quadratic, self._quadratic.T, out=own)
        for column, same, other in self._agreement:
            factor = np.where(places.rows[:, column, None] == self._points[:, column], same, other)
            own += factor if is_full else factor * _both_have(places.has, self._has, column)
        logs[:, -1] = math.log(self._shares[-1])
        highest: Floats = np.maximum.reduce(logs, axis=1)
        logs -= highest[:, None]
        highest += np.log(np.add.reduce(np.exp(logs, out=logs), axis=1))
        return highest

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw rows that exist in the space, and keep its constraints as far as some draws more find such rows."""
        rows = self._draw(count, rng)
        if self._encoding.is_constrained:
            for _ in range(_REDRAWN):
                broken = np.flatnonzero(self._encoding.broken(rows))
                if not len(broken):
                    break
                rows[broken] = self._draw(len(broken), rng)
        return rows

    def _draw(self, count: int, rng: np.random.Generator) -> Floats:
        kernels = self._cumulated.searchsorted(rng.random(count))
        draws = rng.random((count, self._encoding.width))
        if not len(self._points):
            return self._encoding.settle(draws)
        is_chance = kernels >= len(self._points)
        kernels[is_chance] = 0
        middle, is_chance = self._points.take(kernels, axis=0), is_chance[:, None]
        if self._has is None:
            low, inside = (part.take(kernels, axis=0) for part in self._parts)
        else:
            is_chance = is_chance | ~self._borrow(self._has.take(kernels, axis=0), middle, rng)
            low, inside = self._cut(middle)
        near = middle + self._widths * np.interp(low + draws * inside, _BELOW, _GRID)
        if len(self._encoding.choices):
            near[:, self._encoding.choices] = self._choose(middle, draws)
        return self._encoding.settle(np.where(is_chance, draws, near))

    @cached_property
    def _cumulated(self) -> Floats:
        return np.cumsum(self._shares)

    @cached_property
    def _parts(self) -> tuple[Floats, Floats]:
        return self._cut(self._points)

    def _cut(self, middle: Floats) -> tuple[Floats, Floats]:
        """Return how much of the Gaussians around some points lies below 0, and how much from 0 to 1."""
        low, high = np.interp(np.array([-middle, 1.0 - middle]) / self._widths, _GRID, _BELOW)
        return low, high - low

    def _choose(self, middle: Floats, draws: Floats) -> Floats:
        """Return choices: a draw decides whether to change, and what is left of it what to change to."""
        counts = self._encoding.choice_counts
        middle, draws = middle[:, self._encoding.choices], draws[:, self._encoding.choices]
        other = np.floor(draws / np.maximum(self._change, 1e-12) * (counts - 1))
        other = np.minimum(other, np.maximum(counts - 2, 0))
        other += other >= np.floor(middle * counts)
        return np.where(draws < self._change, (other + 0.5) / counts, middle)

    def _borrow(self, has: Booleans, middle: Floats, rng: np.random.Generator) -> Booleans:
        """Fill what drawn kernels lack from kernels that have it, or leave it to chance as often as one.

        Args:
            has: What they have.
            middle: The points they are around; filled in place.
            rng: Source of randomness.

        Returns:
            What they have then.
        """
        assert self._has is not None
        for j in np.flatnonzero(~has.all(axis=0)):
            donors = self._points[self._has[:, j], j]
            taken = rng.integers(0, len(donors) + 1, size=len(has))
            lends = ~has[:, j] & (taken < len(donors))
            if lends.any():
                middle[lends, j] = donors[taken[lends]]
                has[:, j] |= lends
        return has


def _present(rows: Floats) -> Booleans | None:
    """Return where rows have values, `None` if everywhere."""
    return ~np.isnan(rows) if math.isnan(np.add.reduce(rows, axis=None)) else None


def _both_have(places: Booleans | None, points: Booleans | None, column: int) -> Booleans | float:
    """Return which pairs of a place and a point have a column, one row for each place."""
    if points is None:
        return 1.0 if places is None else places[:, column, None]
    return points[:, column] if places is None else places[:, column, None] & points[:, column]


def _mass_inside(scaled: Floats, width: Floats) -> Floats:
    """Return how much of the Gaussians around some points lies between 0 and 1, one row for each column.

    Right to three digits, and several times as fast as the grid: enough for the mass that a border cuts off.
    """
    z = np.empty((2, *scaled.shape))
    np.subtract(1.0 / width, scaled, out=z[0])
    np.negative(scaled, out=z[1])
    below: Floats = z * z
    below *= 0.0356774081
    below += 0.7978845608
    below *= z
    np.tanh(below, out=below)
    below *= 0.5
    below += 0.5
    inside: Floats = below[0] - below[1]
    return inside
