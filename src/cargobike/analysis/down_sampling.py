"""Fewer points that look the same: for curves too long to be sent or drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np

from cargobike.analysis.axes import Floats

Method = Literal["lttb", "minmax"]


def down_sampled(x: Floats, y: Floats, most: int, method: Method = "lttb") -> list[int]:
    """Return the indices of at most `most` points by which a curve can be drawn, both ends among them.

    Args:
        x: Where the points lie, in order.
        y: What was measured there; NaN is a gap, and stays one.
        most: How many points may stay, at least three; with three `"minmax"` keeps the ends alone.
        method: `"lttb"` keeps what the eye sees as the shape (largest triangle of three buckets), `"minmax"` the
            highest and the lowest of each stretch, so that no spike is lost.
    """
    if len(x) <= most:
        return list(range(len(x)))
    return _triangles(x, y, most) if method == "lttb" else _extremes(y, most)


def _triangles(x: Floats, y: Floats, most: int) -> list[int]:
    heights = np.where(np.isfinite(y), y, 0.0)
    edges = np.linspace(1, len(x) - 1, most - 1).astype(int)
    kept = [0]
    for bucket, (start, end) in enumerate(pairwise(edges)):
        following = slice(edges[bucket + 1], edges[bucket + 2]) if bucket + 2 < len(edges) else slice(len(x) - 1, None)
        next_x, next_y = float(x[following].mean()), float(heights[following].mean())
        last = kept[-1]
        part = slice(start, max(end, start + 1))
        areas = np.abs(
            (x[last] - next_x) * (heights[part] - heights[last]) - (x[last] - x[part]) * (next_y - heights[last])
        )
        kept.append(start + int(np.argmax(areas)))
    kept.append(len(x) - 1)
    return sorted(set(kept))


def _extremes(y: Floats, most: int) -> list[int]:
    stretches = (most - 2) // 2  # two points of each, besides both ends
    kept = {0, len(y) - 1}
    for start, end in pairwise(np.linspace(0, len(y), stretches + 1).astype(int).tolist()):
        part = y[start:end]
        if np.isfinite(part).any():
            kept.update((start + int(np.nanargmin(part)), start + int(np.nanargmax(part))))
        elif len(part):
            kept.add(start)
    return sorted(kept)
