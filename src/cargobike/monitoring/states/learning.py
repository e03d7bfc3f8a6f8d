"""Learn from the rows of a reference what its states count: bins of equal shares, categories, typical distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.monitoring.rows.columns import choose_columns, texts_of
from cargobike.monitoring.rows.encoding import floats_of
from cargobike.monitoring.states.layout import (
    CategoryColumn,
    Codes,
    Floats,
    Layout,
    NumberColumn,
    Singles,
)

BINS: Final = 16
MOST_CATEGORIES: Final = 32
"""How many categories of a column are counted one by one."""
MOST_KNOWN: Final = 10_000
"""How many categories of a column are remembered by name, so that one that was never seen can be told."""
_LIKE_NORMAL: Final = 1.349
"""How many standard deviations lie between the quartiles of a normal distribution."""
_DISTANCES: Final = 2000
_STEADY: Final = 0.95
"""A column with more than this share of rows in one bin hardly varies."""


def learn_layout(table: pa.Table, columns: Sequence[str] | None, seed: int) -> Layout:
    """Return what states of a reference count; the bandwidth is not known yet.

    Args:
        table: The reference, or a sample of its rows.
        columns: The columns to judge; all that can be judged if not given.
        seed: What is random is drawn from it.

    Raises:
        InvalidInputError: If a column is not there or cannot be judged, or if none can.
    """
    numbers, categories, skipped = choose_columns(table.schema, columns)
    return Layout(
        numbers=tuple(_number_column(name, table.column(name)) for name in numbers),
        categories=tuple(_category_column(name, table.column(name)) for name in categories),
        skipped=skipped,
        seed=seed,
    )


def _number_column(name: str, column: pa.ChunkedArray) -> NumberColumn:
    values = floats_of(column)
    rows = max(len(values), 1)
    values = np.sort(values[np.isfinite(values)])
    kind = str(column.type)
    if not len(values):
        return NumberColumn(name=name, type=kind, centre=0.0, scale=1.0, edges=(), is_steady=True)
    low, centre, high = (float(values[int(share * (len(values) - 1))]) for share in (0.25, 0.5, 0.75))
    with np.errstate(over="ignore"):
        scale = (high - low) / _LIKE_NORMAL or float(np.std(values)) or 1.0
    if not np.isfinite(scale):
        scale = float(np.finfo(np.float64).max)
    edges = _edges(values, centre, scale)
    with np.errstate(over="ignore"):
        standard = ((values - centre) / scale).astype(np.float32)
    largest = np.diff(np.searchsorted(standard, edges, "left"), prepend=0, append=len(values)).max()
    is_steady = max(largest, rows - len(values)) > _STEADY * rows
    return NumberColumn(name=name, type=kind, centre=centre, scale=scale, edges=edges, is_steady=bool(is_steady))


def _edges(values: Floats, centre: float, scale: float) -> tuple[float, ...]:
    """Return edges between bins of about equal shares; a value that many rows have gets a bin of its own."""
    with np.errstate(over="ignore"):
        standard = ((values - centre) / scale).astype(np.float32)
    places = (np.arange(1, BINS) * len(standard)) // BINS
    edges: set[float] = set()
    for edge in np.unique(standard[places]):
        edges.add(float(edge))
        above = np.searchsorted(standard, edge, "right")
        if (above - np.searchsorted(standard, edge, "left")) * 2 * BINS > len(standard):
            edges.add(float(np.nextafter(edge, np.float32(np.inf))))
    return tuple(sorted(edges))


def _category_column(name: str, column: pa.ChunkedArray) -> CategoryColumn:
    counted = pc.value_counts(texts_of(column).drop_null())
    pairs = zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    counts: list[tuple[str, int]] = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
    often = [text for text, count in counts[:MOST_CATEGORIES] if count > 1 or len(counts) <= MOST_CATEGORIES]
    others = [text for text, _ in counts[len(often) :]]
    return CategoryColumn(
        name=name,
        type=str(column.type),
        categories=tuple(often),
        others=tuple(others) if len(counts) <= MOST_KNOWN else (),
        is_complete=len(counts) <= MOST_KNOWN,
        rare=sum(count == 1 for _, count in counts) / max(len(column), 1),
    )


def bandwidth_of(numbers: Singles, codes: Codes, seed: int) -> float:
    """Return the median distance between two rows; categories that differ are as far apart as is usual for numbers.

    Args:
        numbers: Standardized numbers, a row for each column.
        codes: Categories, likewise.
        seed: What the pairs of rows are drawn from.
    """
    random = np.random.default_rng([seed, 0xBA])
    rows = numbers.shape[1] or codes.shape[1]
    one, other = random.integers(0, rows, (2, _DISTANCES))
    squares: Any = ((numbers[:, one] - numbers[:, other]).astype(np.float64) ** 2).sum(0)
    squares = squares + 2.0 * (codes[:, one] != codes[:, other]).sum(0)
    apart = squares[squares > 0]
    return float(np.sqrt(np.median(apart))) if len(apart) else 1.0
