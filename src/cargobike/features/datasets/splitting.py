"""Split rows into parts: by share, by time, or by key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.values.words import count
from cargobike.features.joining.spine import as_times

ROWS, TIME, KEY = "rows", "time", "key"
CLAIM = "claim"
_PART = re.compile(r"[a-z][a-z0-9_]{0,30}")


def check_split(split: Mapping[str, float], by: str, columns: Sequence[str]) -> None:
    """Refuse a split that cannot be made.

    Raises:
        InvalidInputError: Listing all mistakes.
    """
    mistakes = [
        f"{name!r} is no name of a part: lower-case letters, digits and '_'."
        for name in split
        if not _PART.fullmatch(str(name))
    ]
    if CLAIM in split:
        mistakes.append(f"{CLAIM!r} is no name of a part: a writer calls a file of its own so.")
    mistakes += [f"{name} is to be {share!r}; give a share above 0." for name, share in split.items() if not share > 0]
    if not mistakes and abs(sum(split.values()) - 1) > 1e-6:
        mistakes.append(f"The shares are {sum(split.values()):g} together; they must be 1.")
    if by not in {ROWS, TIME, KEY, *columns}:
        mistakes.append(f"by={by!r} was given; give 'rows', 'time', 'key' or a column.{nearest(by, columns)}")
    if mistakes:
        raise InvalidInputError("The rows cannot be split like this:", mistakes)


def split_rows(
    table: pa.Table, split: Mapping[str, float], *, seed: int, by: str, time: str, keys: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the numbers of the rows of each part, in their order; every row is in one part.

    Args:
        table: The rows.
        split: The share of each part.
        seed: The same seed gives the same parts of the same rows.
        by: `rows` draws rows; `time` puts the earliest into the first part, and rows of one moment into the same;
            `key`, or the name of a column, puts rows with the same key into the same part.
        time: The column of times.
        keys: The key columns.

    Raises:
        InvalidInputError: If a part would be empty, or times are missing.
    """
    if by == TIME:
        parts = _by_time(table, split, time)
    elif by == ROWS:
        order = np.random.default_rng(seed).permutation(len(table))
        parts = dict(zip(split, np.split(order, _cuts(split, len(table))), strict=True))
    else:
        parts = _by_key(table, split, seed, keys if by == KEY else [by])
    empty = [name for name, rows in parts.items() if not len(rows)]
    if empty:
        raise InvalidInputError(
            f"{', '.join(empty)} would have no rows: there are {count(len(table), 'row')} to split by {by}. Give more "
            "rows, or another split."
        )
    return {name: np.sort(rows) for name, rows in parts.items()}


def _cuts(split: Mapping[str, float], size: int) -> np.ndarray:
    shares = np.cumsum(list(split.values()))[:-1]
    return np.asarray(np.rint(shares * size), dtype=np.int64)


def _by_time(table: pa.Table, split: Mapping[str, float], time: str) -> dict[str, np.ndarray]:
    if not time:
        raise InvalidInputError("by='time' was given, and the rows have no column with times. Give time='column'.")
    times = as_times(table[time], time)
    if times.null_count:
        raise InvalidInputError(f"by='time' was given, and {times.null_count} rows have no {time!r}.")
    moments = pc.cast(times, pa.int64()).to_numpy()
    order = np.argsort(moments, kind="stable")
    ordered = moments[order]
    cuts = [
        int(np.searchsorted(ordered, ordered[cut], side="left")) if cut < len(ordered) else len(ordered)
        for cut in _cuts(split, len(ordered))
    ]
    return dict(zip(split, np.split(order, cuts), strict=True))


def _by_key(table: pa.Table, split: Mapping[str, float], seed: int, keys: Sequence[str]) -> dict[str, np.ndarray]:
    number = np.zeros(len(table), dtype=np.int64)
    for key in keys:
        _, codes = np.unique(_sortable(table[key]), return_inverse=True)
        _, number = np.unique(number * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    distinct = int(number.max(initial=-1)) + 1
    drawn = np.split(np.random.default_rng(seed).permutation(distinct), _cuts(split, distinct))
    return {name: np.flatnonzero(np.isin(number, some)) for name, some in zip(split, drawn, strict=True)}


def _sortable(values: pa.ChunkedArray) -> np.ndarray:
    """Return values as an array that NumPy can sort."""
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if pa.types.is_integer(values.type) and not values.null_count:
        return np.asarray(values.to_numpy())
    return np.array([repr(value) for value in values.to_pylist()])
