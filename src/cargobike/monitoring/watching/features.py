"""Features of what was logged, named as in the reference: the same function prepares both.

`input.age` is the feature `age`, `output.score` stays `output.score`. A short vector becomes a column for each element
(`x[0]`), a long one a few figures of it (`x.mean`). Where a log has only JSON, fields of objects become columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.monitoring.rows.columns import is_category
from cargobike.monitoring.states.layout import CategoryColumn, Layout

MOST_ELEMENTS: Final = 64
"""Up to so many elements, each element of a vector is a feature."""
OUTPUT: Final = "output."
_INPUT: Final = "input."
_HEAD: Final = frozenset({"request_id", "at", "latency_ms", "model", "version", "status", "row", "input", "output"})
_REFUSED: Final = 400


def answered(rows: pa.Table) -> pa.Table:
    """Return the rows of a log that a model has answered."""
    chosen = pc.and_(pc.less(rows["status"], _REFUSED), pc.is_valid(rows["row"]))
    return rows.filter(chosen)


def features_of_log(rows: pa.Table) -> pa.Table:
    """Return rows of a log as features."""
    columns = {name: rows[name] for name in rows.column_names if name not in _HEAD}
    for side in ("input", "output"):
        if rows[side].null_count < rows.num_rows:
            parsed = _parsed(rows[side], side)
            columns |= {name: column for name, column in parsed.items() if name not in columns}
    return features_of(pa.table(columns) if columns else _no_columns(rows.num_rows))


def features_of(table: pa.Table) -> pa.Table:
    """Return the columns of a table as features: vectors taken apart, names without `input.`."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        for feature, column in _apart(name.removeprefix(_INPUT), table[name]):
            columns.setdefault(feature, column)
    return pa.table(columns) if columns else _no_columns(table.num_rows)


def fitted(features: pa.Table, layout: Layout) -> pa.Table:
    """Return features with the columns of a reference; what is not there, or of another kind, counts as missing."""
    columns = {}
    for column in layout.columns:
        there = features[column.name] if column.name in features.column_names else None
        columns[column.name] = _as_kind(there, features.num_rows, is_text=isinstance(column, CategoryColumn))
    return pa.table(columns)


def _as_kind(column: pa.ChunkedArray | None, rows: int, *, is_text: bool) -> Any:
    kind = pa.string() if is_text else pa.float64()
    if column is None or pa.types.is_null(column.type):
        return pa.nulls(rows, kind)
    if is_category(column.type) == is_text and not pa.types.is_nested(column.type):
        return column
    try:
        return column.cast(kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([_number(value) for value in column.to_pylist()] if not is_text else [None] * rows, kind)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _apart(name: str, column: pa.ChunkedArray) -> Iterator[tuple[str, Any]]:
    kind = column.type
    if not pa.types.is_fixed_size_list(kind):
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            yield from _figures(name, [_numbers(value) for value in column.to_pylist()])
        else:
            yield name, column
        return
    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) and whole.num_chunks else whole
    if not column.length() or not (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)):
        return
    if kind.list_size > MOST_ELEMENTS:
        yield from _figures(name, [_numbers(value) for value in column.to_pylist()])
        return
    for place in range(kind.list_size):
        yield f"{name}[{place}]", pc.list_element(whole, place)


def _numbers(value: Any) -> Any:
    if value is None:
        return None
    try:
        numbers = np.asarray(list(_leaves(value)), np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.size else None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _figures(name: str, values: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield what is watched of vectors that are long, or not all of one length."""
    for what, figure in (("mean", np.mean), ("deviation", np.std), ("lowest", np.min), ("highest", np.max)):
        yield f"{name}.{what}", pa.array([None if value is None else float(figure(value)) for value in values])


def _parsed(texts: pa.ChunkedArray, side: str) -> dict[str, Any]:
    """Return columns of what is kept as JSON, under the names that typed ones would have."""
    rows = [_plain(text, side) for text in texts.to_pylist()]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        is_number = all(value is None or (isinstance(value, int | float)) for value in values)
        if is_number and not all(isinstance(value, bool | None) for value in values):
            columns[name] = pa.array([None if value is None else float(value) for value in values], pa.float64())
        else:
            columns[name] = pa.array([None if value is None else str(value) for value in values], pa.string())
    return columns


def _plain(text: str | None, side: str) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    fields = dict(_scalars(value, ""))
    return {f"{side}.{name}" if name else f"{side}.value": item for name, item in fields.items()}


def _scalars(value: Any, name: str) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _scalars(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for place, item in enumerate(value[:MOST_ELEMENTS]):
            yield from _scalars(item, f"{name}[{place}]" if name else f"[{place}]")
    elif not (isinstance(value, float) and not math.isfinite(value)):
        yield name, value


def _no_columns(rows: int) -> pa.Table:
    return pa.table({"": pa.nulls(rows)}).select([]) if rows else pa.table({})
