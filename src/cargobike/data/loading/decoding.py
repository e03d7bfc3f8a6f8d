"""From Arrow to NumPy, a whole group at a time: no objects for rows, no copies but the one into its place."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from numpy.typing import NDArray

from cargobike.data.loading.columns import LISTS, NUMBER, RAGGED_LISTS, TENSOR, Column, is_list

_TURNED_AT_ONCE: Final = 1 << 20
"""How many bytes of columns are stacked side by side at once: what a core's cache holds; that is twice as fast."""


class Problem(NamedTuple):
    """Rows of a group that cannot be given as asked."""

    column: str
    rows: NDArray[np.bool_]
    words: str


def decode(column: Column, table: pa.Table, into: NDArray[Any]) -> list[Problem]:
    """Write what a table has of a column to its place; what is wrong with some of its rows is returned.

    A table may have only some of the columns that are stacked; the others come with another one.
    """
    problems: list[Problem] = []
    if column.is_stacked:
        parts = [
            (number, _numbers(column, field, table, problems))
            for number, field in enumerate(column.fields)
            if field.name in table.schema.names
        ]
        if parts:
            _stack(parts, into)
        return problems
    field = column.fields[0]
    if field.name not in table.schema.names:
        return problems
    if column.kind == NUMBER:
        into[:] = _numbers(column, field, table, problems)
    elif column.kind == TENSOR:
        _tensors(column, _whole(table, field), into, problems)
    elif column.kind == LISTS:
        _lists(column, _whole(table, field), into, problems)
    elif column.kind == RAGGED_LISTS:
        _ragged(column, _whole(table, field), into, problems)
    else:
        _objects(column, _whole(table, field), into, problems)
    return problems


def _stack(parts: list[tuple[int, NDArray[Any]]], into: NDArray[Any]) -> None:
    """Write columns side by side, a cacheful of rows at a time: laid below each other, then turned as a whole."""
    first, last = parts[0][0], parts[-1][0] + 1
    is_run = last - first == len(parts)
    size = max(1, min(_TURNED_AT_ONCE // (len(parts) * into.itemsize), len(into)))
    block = np.empty((len(parts), size), into.dtype)
    for start in range(0, len(into), size):
        rows = into[start : start + size]
        columns = block[:, : len(rows)]
        for place, (_, part) in enumerate(parts):
            columns[place] = part[start : start + size]
        rows[:, slice(first, last) if is_run else [number for number, _ in parts]] = columns.T


def first_length(array: pa.Array) -> int | None:
    """Return how many values the first list that is not null has; `None` if all are null."""
    lengths = pc.drop_null(pc.list_value_length(array))
    return lengths[0].as_py() if len(lengths) else None


def _whole(table: pa.Table, field: pa.Field) -> pa.Array:
    """Return a column in one piece, without the clothes of an extension type."""
    column = table[field.name]
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # more text than one array holds
        array = pa.concat_arrays(array.cast(pa.large_string()).chunks)
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _nulls(column: Column, array: pa.Array, problems: list[Problem], name: str, width: int = 1) -> bool:
    """Tell whether there are nulls that are to be filled; those that are not allowed become a problem."""
    if not array.null_count:
        return False
    if column.nulls == "error":
        rows: NDArray[np.bool_] = np.logical_or.reduce(_is_null(array).reshape(-1, width), axis=1)
        problems.append(
            Problem(
                name,
                rows,
                "holds a null. Give nulls='nan' or a value to put there, such as nulls={" + repr(name) + ": 0}",
            )
        )
    return True


def _numbers(column: Column, field: pa.Field, table: pa.Table, problems: list[Problem]) -> NDArray[Any]:
    return _values(column, _whole(table, field), problems, field.name)


def _values(column: Column, array: pa.Array, problems: list[Problem], name: str, width: int = 1) -> NDArray[Any]:
    """Return numbers as NumPy has them; times in their own unit."""
    has_nulls = _nulls(column, array, problems, name, width)
    if kinds.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if kinds.is_decimal(kind):
        array = array.cast(pa.float64())
    elif kinds.is_timestamp(kind) or kinds.is_duration(kind) or kinds.is_date64(kind) or kinds.is_time64(kind):
        array = array.view(pa.int64())
    elif kinds.is_date32(kind) or kinds.is_time32(kind):
        array = array.view(pa.int32())
    values = _filled(column, array) if has_nulls else plain(array)
    if column.dtype.kind in "Mm":
        return values.astype(np.int64, copy=False).view(column.dtype)
    return values


def plain(array: pa.Array) -> NDArray[Any]:
    """Return numbers without nulls as they lie in memory; Arrow's own way would import pandas first."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.empty(0, array.type.to_pandas_dtype())
    if kinds.is_boolean(array.type):
        bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
        return bits[array.offset : array.offset + len(array)].view(np.bool_)
    dtype: np.dtype[Any] = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)


def _is_null(array: pa.Array) -> NDArray[np.bool_]:
    nulls: NDArray[np.bool_] = plain(array.is_null())
    return nulls


def _filled(column: Column, array: pa.Array) -> NDArray[Any]:
    """Return numbers with something else in place of nulls."""
    empty = _is_null(array)
    zero = False if kinds.is_boolean(array.type) else 0
    values = plain(array.fill_null(pa.scalar(zero, array.type)))
    values = values.astype(np.int64 if column.dtype.kind in "Mm" else column.dtype)
    if column.nulls == "nan":
        values[empty] = np.iinfo(np.int64).min if column.dtype.kind in "Mm" else _nothing(column.dtype)
    elif column.nulls != "error":
        values[empty] = np.asarray(column.nulls, column.dtype).astype(values.dtype)
    return values


def _nothing(dtype: np.dtype[Any]) -> Any:
    """Return what stands for a missing number; in whole numbers, which times as numbers are, the smallest one."""
    return np.nan if dtype.kind == "f" else np.iinfo(dtype).min


def _tensors(column: Column, array: pa.Array, into: NDArray[Any], problems: list[Problem]) -> None:
    if kinds.is_fixed_size_list(array.type):
        _lists(column, array, into.reshape(len(into), -1), problems)
        return
    filled = _nulls(column, array, problems, column.name)
    values = array.buffers()[1]
    width = array.type.byte_width
    rows = np.frombuffer(values, np.uint8, len(array) * width, array.offset * width)
    into[:] = rows.view(column.dtype.newbyteorder("<")).reshape(into.shape)
    if filled and column.nulls != "error":
        empty = _is_null(array)
        into[empty] = _instead(column)


def _instead(column: Column) -> Any:
    return _nothing(column.dtype) if column.nulls == "nan" else column.nulls


def _lists(column: Column, array: pa.Array, into: NDArray[Any], problems: list[Problem]) -> None:
    filled = _nulls(column, array, problems, column.name)
    width = into.shape[1]
    good = None
    if filled or not kinds.is_fixed_size_list(array.type):
        lengths = plain(pc.fill_null(pc.list_value_length(array), -1))
        other = (lengths != width) & (lengths >= 0)
        if other.any():
            found = int(lengths[other][0])
            words = f"has {found} values, and the first row has {width}. Give ragged='pad' or ragged='list'"
            problems.append(Problem(column.name, other, words))
        good = lengths == width
        if not good.all():
            array = array.filter(pa.array(good))
            if column.nulls != "error":
                into[lengths < 0] = _instead(column)
            inner: list[Problem] = []
            into[good] = _values(column, array.flatten(), inner, column.name, width).reshape(-1, width)
            for problem in inner:
                rows = np.zeros(len(into), bool)
                rows[np.flatnonzero(good)[problem.rows]] = True
                problems.append(problem._replace(rows=rows))
            return
    into[:] = _values(column, array.flatten(), problems, column.name, max(width, 1)).reshape(-1, width)


def _ragged(column: Column, array: pa.Array, into: NDArray[Any], problems: list[Problem]) -> None:
    filled = _nulls(column, array, problems, column.name)
    lengths = plain(pc.fill_null(pc.list_value_length(array), 0))
    inner: list[Problem] = []
    values = _values(column, array.flatten(), inner, column.name).astype(column.dtype, copy=False)
    ends = np.cumsum(lengths)
    for row, (end, count) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
        into[row] = values[end - count : end].copy()  # a view would keep the whole group in memory
    for problem in inner:
        owners = np.searchsorted(ends, np.flatnonzero(problem.rows), side="right")
        rows = np.zeros(len(into), bool)
        rows[owners] = True
        problems.append(problem._replace(rows=rows))
    if filled and column.nulls not in ("error", "nan"):
        for row in np.flatnonzero(_is_null(array)).tolist():
            into[row] = np.asarray(column.nulls, column.dtype).reshape(-1)


def _objects(column: Column, array: pa.Array, into: NDArray[Any], problems: list[Problem]) -> None:
    filled = _nulls(column, array, problems, column.name)
    if kinds.is_nested(array.type) or is_list(array.type):
        for row, value in enumerate(array.to_pylist()):
            into[row] = value
    else:
        into[:] = array.to_numpy(zero_copy_only=False)
    if filled and column.nulls not in ("error", "nan"):
        for row in np.flatnonzero(_is_null(array)).tolist():
            into[row] = column.nulls
