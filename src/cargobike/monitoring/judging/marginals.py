"""Distances of single columns: from counts in bins, and sums in them."""

from __future__ import annotations

import numpy as np

from cargobike.monitoring.states.layout import Floats

_PRIOR = 0.5
"""Added to each count before logarithms are taken, so that an empty bin is no infinite distance."""


def shares_of(cells: Floats) -> Floats:
    """Return counts as shares of their column; zero for a column without rows."""
    total = cells.sum(-1, keepdims=True)
    return np.asarray(np.divide(cells, total, out=np.zeros_like(cells), where=total > 0))


def smoothed(cells: Floats, exists: Floats) -> Floats:
    """Return counts as shares of which none is zero, except where no cell exists."""
    cells = (cells + _PRIOR) * exists
    return np.asarray(cells / np.maximum(cells.sum(-1, keepdims=True), _PRIOR))


def population_stability(now: Floats, then: Floats) -> Floats:
    """Return the population stability index of each column from smoothed shares."""
    ratio = np.divide(now, then, out=np.ones(np.broadcast(now, then).shape), where=then > 0)
    logarithm = np.log(ratio, out=np.zeros(ratio.shape), where=ratio > 0)
    return np.asarray(((now - then) * logarithm).sum(-1))


def jensen_shannon(now: Floats, then: Floats) -> Floats:
    """Return the Jensen-Shannon divergence of each column, in bits, from smoothed shares."""
    middle = (now + then) / 2
    return np.asarray((_against(now, middle) + _against(then, middle)) / 2)


def _against(one: Floats, middle: Floats) -> Floats:
    ratio = np.divide(one, middle, out=np.ones(middle.shape), where=middle > 0)
    logarithm = np.log2(ratio, out=np.zeros(middle.shape), where=ratio > 0)
    return np.asarray((one * logarithm).sum(-1))


def kolmogorov_smirnov(now: Floats, then: Floats) -> Floats:
    """Return the largest difference of the distribution functions at the edges of bins."""
    return np.asarray(np.abs(np.cumsum(now - then, -1)).max(-1))


def wasserstein(now: Floats, then: Floats, at_now: Floats, at_then: Floats) -> Floats:
    """Return how far values have to be moved on average, in units of the reference's spread.

    Each bin counts as a point at the mean of its values, on either side.

    Args:
        now: Shares of the bins in the windows.
        then: Shares in the reference.
        at_now: Means of the values in the bins.
        at_then: Means in the reference.
    """
    low, high = np.minimum(at_now, at_then), np.maximum(at_now, at_then)
    behind = np.cumsum(now - then, -1)  # how much more is at or below a bin now than then
    before = behind - (now - then)
    inside = np.where(at_now <= at_then, before + now, before - then)  # between the two points of a bin
    within = (np.abs(inside) * (high - low)).sum(-1)
    between = (np.abs(behind[..., :-1]) * np.maximum(low[..., 1:] - high[..., :-1], 0)).sum(-1)
    return np.asarray(within + between)
