"""Marks along a parameter's axis: where they stand, and what is written beside them."""

from __future__ import annotations

import math

import numpy as np

from cargobike.analysis.axes import Axis


def ticks_of(axis: Axis) -> tuple[list[float], list[str]]:
    """Return where marks stand on an axis, and what is written beside them."""
    if axis.kind == "choice":
        step = max(1, math.ceil(len(axis.labels) / 20))
        kept = range(0, len(axis.labels), step)
        return [float(place) for place in kept], [axis.labels[place] for place in kept]
    low, high = axis.ends
    if axis.scale == "linear":
        return _round_ticks(low, high, smallest=1.0 if axis.is_whole else 0.0)
    if axis.scale == "log":
        return _log_ticks(low, high)
    places, texts = _log_ticks(-high, -low)  # of the distance to the ceiling
    return [-place for place in places], [
        f"{axis.unstretched(-place):.6g}" for place, _ in zip(places, texts, strict=True)
    ]


def _round_ticks(low: float, high: float, smallest: float) -> tuple[list[float], list[str]]:
    rough = max((high - low) / 5, smallest)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    places = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step
    return [float(place) for place in places], [f"{place:.6g}" for place in places]


def _log_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    step = max(1, math.ceil((last - first + 1) / 7))
    values = [10.0**power for power in range(first, last + 1, step)]
    if len(values) < 3:
        parts = (1, 2, 5) if high - low < 1 else (1, 3)
        powers = range(math.floor(low), math.ceil(high) + 1)
        between = [part * 10.0**power for power in powers for part in parts]
        values = [value for value in between if low - 1e-9 <= math.log10(value) <= high + 1e-9] or values
    return [math.log10(value) for value in values], [f"{value:.6g}" for value in values]
