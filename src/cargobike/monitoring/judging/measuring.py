"""All statistics of windows against a reference: one function for a real window and for those that calibrate it."""

from __future__ import annotations

from typing import Final

import numpy as np

from cargobike.monitoring.judging.marginals import (
    jensen_shannon,
    kolmogorov_smirnov,
    population_stability,
    shares_of,
    smoothed,
    wasserstein,
)
from cargobike.monitoring.judging.windows import Windows
from cargobike.monitoring.states.fourier import SCALES
from cargobike.monitoring.states.layout import FARTHEST, Floats, Layout

PAIRED: Final = " × "
ALL: Final = "all columns"
_NO_VARIANCE: Final = 1e-9
JOINT: Final = ("all columns, coarse", "all columns, fine")
"""What the joint comparison is called where columns have their names: one for each bandwidth."""

SHRINKING: Final = {
    "mean": 0.5,
    "means": 0.5,
    "ks": 0.5,
    "wasserstein": 0.5,
    "psi": 1.0,
    "js": 1.0,
    "missing": 0.5,
    "unseen": 0.5,
    "correlation": 0.5,
    "mmd": 1.0,
}
"""The statistics, and the power of the number of rows with which each shrinks if there is no shift."""

WORDS: Final = {
    "mean": "mean moved, in spreads of the reference",
    "means": "moves of the means of all columns together, in standard deviations",
    "ks": "Kolmogorov-Smirnov: largest difference of the distribution functions",
    "wasserstein": "Wasserstein: how far values moved on average, in spreads of the reference",
    "psi": "population stability index",
    "js": "Jensen-Shannon divergence, in bits",
    "missing": "share of missing values, difference",
    "unseen": "share of categories never seen before, difference",
    "correlation": "correlation of two columns, difference",
    "mmd": "maximum mean discrepancy of all columns together, squared",
}

Statistics = dict[str, Floats]
"""By the name of a statistic: a row for each window, a column for each subject."""


class Measuring:
    """Compares windows with one reference.

    Args:
        layout: What both count.
        reference: The reference, as a single window.
    """

    def __init__(self, layout: Layout, reference: Windows) -> None:
        self._layout = layout
        self._reference = reference
        cells = layout.bins
        counts = np.array([len(column.edges) + 1 for column in layout.numbers], np.int64)
        self._bins_exist = np.ones((len(counts), cells + 1))
        self._bins_exist[:, :cells] = np.arange(cells) < counts[:, None]
        self._kinds_exist = np.ones((len(layout.categories), layout.kinds + 2))
        for row, column in enumerate(layout.categories):
            self._kinds_exist[row, : layout.kinds] = np.arange(layout.kinds) <= len(column.categories)
            self._kinds_exist[row, layout.kinds] = column.is_complete
        self._watched = [row for row, column in enumerate(layout.categories) if column.is_complete]
        self._then = _means(reference, self._default_points())
        self._correlated = _correlations(reference, layout)

    def subjects(self, statistic: str) -> list[str]:
        """Return what the columns of a statistic are about: a column, a pair, all of them."""
        numbers = [column.name for column in self._layout.numbers]
        categories = [column.name for column in self._layout.categories]
        if statistic in {"mean", "ks", "wasserstein"}:
            return numbers
        if statistic == "means":
            return [ALL] if numbers else []
        if statistic == "unseen":
            return [categories[row] for row in self._watched]
        if statistic == "correlation":
            return [f"{numbers[one]}{PAIRED}{numbers[two]}" for one, two in zip(*self._layout.pairs, strict=True)]
        return list(JOINT) if statistic == "mmd" else numbers + categories

    def measure(self, windows: Windows) -> Statistics:
        """Return all statistics of windows; those without subjects are left out."""
        measured = {**self._of_numbers(windows), **self._of_all(windows), **self._joint(windows)}
        return {name: values for name, values in measured.items() if values.shape[1]}

    def _of_numbers(self, windows: Windows) -> Statistics:
        now, then = shares_of(windows.bins[..., :-1]), shares_of(self._reference.bins[..., :-1])
        # Bins without values on one side count as points where the other side has them.
        points = _means(windows, np.broadcast_to(self._then, now.shape))
        there = (windows.bins[..., :-1].sum(-1) > 0) & (self._reference.bins[..., :-1].sum(-1) > 0)
        moved = np.abs((now * points).sum(-1) - (then * self._then).sum(-1))
        moved *= there
        variances = np.maximum(self._reference.squares - (self._reference.sums.sum(-1) / self._reference.rows) ** 2, 0)
        lively = (variances > _NO_VARIANCE) & ~self._layout.steady
        scaled = np.divide(moved, np.sqrt(variances), out=np.zeros_like(moved), where=lively)
        # Cubes, not squares: a few columns that move a little are to count more than many that do not.
        together = (scaled**3).sum(1, keepdims=True) ** (1 / 3)
        return {
            "mean": moved,
            "means": together[:, : moved.shape[1]],
            "ks": kolmogorov_smirnov(now, then) * there if now.shape[1] else moved,
            "wasserstein": wasserstein(now, then, points, self._then) * there,
        }

    def _of_all(self, windows: Windows) -> Statistics:
        now = smoothed(windows.bins, self._bins_exist), smoothed(windows.kinds, self._kinds_exist)
        then = smoothed(self._reference.bins, self._bins_exist), smoothed(self._reference.kinds, self._kinds_exist)
        pairs = [*zip(now, then, strict=True)]
        cells = shares_of(windows.bins), shares_of(windows.kinds)
        before = shares_of(self._reference.bins), shares_of(self._reference.kinds)
        missing = [one[..., -1] - other[..., -1] for one, other in zip(cells, before, strict=True)]
        unseen = cells[1][..., -2] - before[1][..., -2]
        return {
            "psi": np.concatenate([population_stability(*pair) for pair in pairs], 1),
            "js": np.concatenate([jensen_shannon(*pair) for pair in pairs], 1),
            "missing": np.abs(np.concatenate(missing, 1)),
            "unseen": np.maximum(unseen[:, self._watched], 0),
        }

    def _joint(self, windows: Windows) -> Statistics:
        apart = (windows.fourier - self._reference.fourier) ** 2
        groups = np.split(apart, len(SCALES), axis=1)
        squared = np.stack([2 * group.mean(1) for group in groups], 1)
        return {"mmd": squared, "correlation": np.abs(_correlations(windows, self._layout) - self._correlated)}

    def _default_points(self) -> Floats:
        """Return a point in each bin of the reference, for bins without values: the edge at which it begins."""
        edges = np.minimum(self._layout.edges.astype(np.float64), np.finfo(np.float32).max)
        edges = np.clip(edges, -FARTHEST, FARTHEST)
        first = edges[:, :1] if edges.shape[1] else np.zeros((len(edges), 1))
        return np.concatenate([first, edges], 1)[None]


def _means(windows: Windows, default: Floats) -> Floats:
    counts = windows.bins[..., :-1]
    return np.asarray(np.divide(windows.sums, counts, out=np.array(default, np.float64), where=counts > 0))


def _correlations(windows: Windows, layout: Layout) -> Floats:
    """Return the correlation of each pair; zero where a column does not vary."""
    first, second = layout.pairs
    if not len(first):
        return np.zeros((len(windows.rows), 0))
    means = windows.sums.sum(-1) / np.maximum(windows.rows, 1)[:, None]
    variances = np.maximum(windows.squares - means**2, 0)
    together = windows.products - means[:, first] * means[:, second]
    product = np.sqrt(variances[:, first] * variances[:, second])
    correlations = np.divide(together, product, out=np.zeros_like(together), where=product > 1e-6)
    return np.asarray(np.clip(correlations, -1, 1))
