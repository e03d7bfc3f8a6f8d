"""Windows as arrays: what is compared with the reference, one window or thousands at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cargobike.monitoring.states.layout import Floats, Layout
from cargobike.monitoring.states.state import State


@dataclass(frozen=True, slots=True)
class Windows:
    """Any number of windows; the first axis of each array is the window.

    Attributes:
        rows: How many rows each has.
        bins: Values in each bin of each column of numbers; the last cell counts what is missing.
        sums: Sums of standardized values in each bin.
        kinds: Rows of each category in each column of categories, then those never seen before, then missing ones.
        fourier: Means of the Fourier features.
        squares: Means of squared standardized numbers.
        products: Means of the products of each pair.
    """

    rows: Floats
    bins: Floats
    sums: Floats
    kinds: Floats
    fourier: Floats
    squares: Floats
    products: Floats


def window_of(state: State, layout: Layout) -> Windows:
    """Return one state as a window."""
    first, second = layout.pairs
    rows = max(state.rows, 1)
    return Windows(
        rows=np.array([float(state.rows)]),
        bins=state.bins[None].astype(np.float64),
        sums=state.sums[None],
        kinds=state.kinds[None].astype(np.float64),
        fourier=state.fourier[None] / rows,
        squares=state.cut_squares[None] / rows,
        products=state.products[first, second][None] / rows,
    )
