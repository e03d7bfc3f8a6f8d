"""A summary of numbers from which quantiles and histograms are read.

It holds order statistics at evenly spread ranks: all values up to `SIZE`, and `SIZE + 1` of them beyond. A value
between two that are kept has a rank between theirs, so that ranks are wrong by less than 1 / `SIZE` of the count, and
each merge adds at most as much; the least and the greatest value are always exact.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SIZE: Final = 256


def summarize(values: Floats) -> Floats:
    """Return the summary of finite numbers."""
    return _chosen(np.sort(values), len(values))


def merge(parts: list[tuple[int, Floats]]) -> tuple[int, Floats]:
    """Return count and summary of all numbers together, given those of parts."""
    parts = [part for part in parts if part[0]]
    if not parts:
        return 0, np.empty(0)
    if len(parts) == 1:
        return parts[0]
    total = sum(count for count, _ in parts)
    values = np.concatenate([summary for _, summary in parts])
    weights = np.concatenate([_weights(count, len(summary)) for count, summary in parts])
    order = np.argsort(values, kind="stable")
    values = values[order]
    if total <= SIZE:
        return total, values
    below = np.cumsum(weights[order])
    return total, values[np.searchsorted(below, _ranks(total) + 1, side="left")]


def quantile(count: int, summary: Floats, share: float) -> float:
    """Return the value below which a share of the numbers lies; `nan` if there are none."""
    if not count:
        return float("nan")
    return float(np.interp(share * (count - 1), _ranks(count) if count > SIZE else np.arange(count), summary))


def histogram(count: int, summary: Floats, bins: int) -> tuple[list[float], list[int]]:
    """Return the edges of bins of equal width, and how many numbers are in each."""
    if not count:
        return [], []
    low, high = float(summary[0]), float(summary[-1])
    if low == high:
        return [low, high], [count]
    shares = np.linspace(0.0, 1.0, bins + 1)
    edges = np.maximum.accumulate(low * (1 - shares) + high * shares)  # in this way no difference can overflow
    edges[-1] = high
    counts, _ = np.histogram(summary, bins=edges, weights=_weights(count, len(summary)))
    return [float(edge) for edge in edges], [round(each) for each in counts]


def _chosen(ordered: Floats, count: int) -> Floats:
    return ordered if count <= SIZE else ordered[_ranks(count)]


def _ranks(count: int) -> npt.NDArray[np.int64]:
    """Return the ranks, from 0, at which values are kept."""
    return np.round(np.linspace(0, count - 1, SIZE + 1)).astype(np.int64)


def _weights(count: int, size: int) -> npt.NDArray[np.int64]:
    """Return how many numbers each kept value stands for: itself, and those between it and the one before."""
    if count <= SIZE:
        return np.ones(size, dtype=np.int64)
    return np.diff(_ranks(count), prepend=-1)
