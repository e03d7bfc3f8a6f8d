"""Windows without any shift: rows drawn from the reference again and again, summed as real ones are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cargobike.monitoring.judging.windows import Windows
from cargobike.monitoring.rows.pool import Pool
from cargobike.monitoring.states.fourier import Fourier
from cargobike.monitoring.states.layout import Floats, Layout, Singles
from cargobike.monitoring.states.state import State

_WINDOWS_AT_ONCE: Final = 256
_COLUMNS_AT_ONCE: Final = 32
_DRAWN_ONE_BY_ONE: Final = 16_384
UNSEEN_ROWS: Final = 0.5
"""How often something that no row of the reference has would be found in as many rows again (Jeffreys' prior)."""


def drawn_rows(window: int, reference: int) -> int:
    """Return how many rows a null window has, so that it varies as much as a window *and* a reference do together.

    A reference of few rows is itself far from the truth: the difference of two means varies like that of one mean of
    `1 / (1 / window + 1 / reference)` rows.
    """
    return max(1, round(window * reference / (window + reference)))


class NullWindows:
    """Draws windows from a pool.

    Args:
        layout: What windows count.
        pool: Rows of the reference.
        reference: The state of all its rows.
        fourier: The features of the joint comparison.
    """

    def __init__(self, layout: Layout, pool: Pool, reference: State, fourier: Fourier) -> None:
        self._layout = layout
        self._pool = pool
        self._rows = reference.rows
        numbers = pool.numbers.astype(np.float32)
        self._numbers = numbers
        self._fourier: Singles = np.ascontiguousarray(fourier.of(numbers, pool.codes).T)
        first, second = layout.pairs
        self._products: Singles = np.ascontiguousarray((numbers[first] * numbers[second]).T)
        self._squares: Singles = np.ascontiguousarray((numbers**2).T)
        # What is rare may be in no row of the pool; it is added at the rate that the whole reference has.
        missing = np.concatenate([reference.bins[:, -1], reference.kinds[:, -1]])
        seen = np.concatenate([pool.bins == layout.bins, pool.codes == layout.kinds + 1]).mean(1)
        self._missing_rate = np.clip((missing + UNSEEN_ROWS) / self._rows - seen, 0, 1)
        # Columns that hardly vary are drawn by the shares of the whole reference: the pool has too few of their rows.
        self._steady = np.flatnonzero(layout.steady)
        steady = reference.bins[self._steady].astype(np.float64)
        self._steady_shares = steady / np.maximum(steady.sum(1, keepdims=True), 1)
        cells = np.maximum(steady[:, :-1], 1)
        self._steady_means = reference.sums[self._steady] / cells
        self._missing_rate[self._steady] = UNSEEN_ROWS / self._rows
        self._unseen_rate = np.array(
            [min(column.rare + UNSEEN_ROWS / self._rows, 1) * column.is_complete for column in layout.categories]
        )

    def base(self) -> Windows:
        """Return the pool as the reference that drawn windows are compared with."""
        times = np.ones((1, self._pool.rows), np.float32)
        windows = self._summed(times, np.array([float(self._pool.rows)]))
        factor = self._rows / self._pool.rows
        bins, kinds = windows.bins * factor, windows.kinds * factor
        bins[0, self._steady] = self._steady_shares * self._rows
        sums = windows.sums * factor
        sums[0, self._steady] = bins[0, self._steady, :-1] * self._steady_means
        extra = np.split(self._missing_rate * self._rows, [len(self._layout.numbers)])
        bins[0, :, -1] += extra[0]
        kinds[0, :, -1] += extra[1]
        rows = np.array([float(self._rows)])
        return Windows(rows, bins, sums, kinds, windows.fourier, windows.squares, windows.products)

    def draw(self, rows: int, count: int, random: np.random.Generator) -> Iterator[Windows]:
        """Yield windows, some hundred at a time.

        Args:
            rows: How many rows each has.
            count: How many windows.
            random: What they are drawn from.
        """
        for start in range(0, count, _WINDOWS_AT_ONCE):
            number = min(_WINDOWS_AT_ONCE, count - start)
            times = self._times(rows, number, random)
            windows = self._summed(times, times.sum(1, dtype=np.float64))
            for place, shares, means in zip(self._steady, self._steady_shares, self._steady_means, strict=True):
                windows.bins[:, place] = random.multinomial(rows, shares, number)
                windows.sums[:, place] = windows.bins[:, place, :-1] * means
            numbers = len(self._layout.numbers)
            missing = random.binomial(rows, self._missing_rate, (number, len(self._missing_rate)))
            _replace(windows.bins, -1, missing[:, :numbers], windows.sums)
            _replace(windows.kinds, -1, missing[:, numbers:])
            _replace(windows.kinds, -2, random.binomial(rows, self._unseen_rate, (number, len(self._unseen_rate))))
            yield windows

    def _times(self, rows: int, windows: int, random: np.random.Generator) -> Singles:
        """Return how often each window has each row of the pool."""
        size = self._pool.rows
        if rows > _DRAWN_ONE_BY_ONE:  # each row about as often; how many there are in all hardly varies
            return random.poisson(rows / size, (windows, size)).astype(np.float32)
        drawn = random.integers(0, size, (windows, rows)) + size * np.arange(windows)[:, None]
        return np.bincount(drawn.ravel(), minlength=windows * size).reshape(windows, size).astype(np.float32)

    def _summed(self, times: Singles, rows: Floats) -> Windows:
        shares = rows[:, None]
        bins, sums = self._in_bins(times)
        return Windows(
            rows=rows,
            bins=bins,
            sums=sums,
            kinds=_in_cells(times, self._pool.codes, self._layout.kinds + 2),
            fourier=(times @ self._fourier) / shares,
            squares=(times @ self._squares) / shares,
            products=(times @ self._products) / shares,
        )

    def _in_bins(self, times: Singles) -> tuple[Floats, Floats]:
        cells = self._layout.bins + 1
        bins = _in_cells(times, self._pool.bins, cells)
        sums = _in_cells(times, self._pool.bins, cells, self._numbers)
        return bins, sums[..., :-1]


def _replace(cells: Floats, cell: int, rows: NDArray[np.int64], sums: Floats | None = None) -> None:
    """Turn some rows of each window and column into rows of one cell, in place; all other cells give their share."""
    total = cells.sum(-1)
    left = np.divide(total - rows, total, out=np.zeros_like(total), where=total > 0).clip(0)
    cells *= left[..., None]
    cells[..., cell] += rows
    if sums is not None:
        sums *= left[..., None]


def _in_cells(times: Singles, codes: NDArray[np.uint8], cells: int, values: Singles | None = None) -> Floats:
    """Return how many rows of each window are in each cell of each column, or the sums of their values there."""
    columns, rows = codes.shape
    summed = np.zeros((len(times), columns, cells))
    for start in range(0, columns, _COLUMNS_AT_ONCE):
        some = codes[start : start + _COLUMNS_AT_ONCE]
        spread = np.zeros((rows, len(some), cells), np.float32)
        places: Any = (np.arange(rows)[:, None], np.arange(len(some))[None], some.T)
        spread[places] = 1 if values is None else values[start : start + _COLUMNS_AT_ONCE].T
        summed[:, start : start + _COLUMNS_AT_ONCE] = (times @ spread.reshape(rows, -1)).reshape(
            len(times), len(some), cells
        )
    return summed
