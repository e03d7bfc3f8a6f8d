"""Columns of a row group as values of the types that a schema says: one by one, or as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import NDArray

from cargobike.compat.petastorm.codecs import ScalarCodec
from cargobike.compat.petastorm.errors import DecodeFieldError
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField
from cargobike.data.loading.decoding import plain

Columns = dict[str, Any]
"""The values of each field: a list or an array of as many values as there are rows."""


def decode_values(table: pa.Table, schema: Unischema) -> Columns:
    """Return the fields of a table, each value decoded by the codec of its field.

    Raises:
        DecodeFieldError: If a value cannot be decoded.
    """
    return {name: _values(schema.fields[name], table[name]) for name in table.schema.names if name in schema.fields}


def _values(field: UnischemaField, column: pa.ChunkedArray) -> Sequence[Any]:
    array = whole(column)
    codec = field.codec
    try:
        if codec is None or type(codec) is ScalarCodec:
            return _scalars(field, array)
        return [None if value is None else codec.decode(field, value) for value in array.to_pylist()]
    except Exception as error:
        raise DecodeFieldError(f"Decoding field {field.name!r} failed: {error}") from error


def _scalars(field: UnischemaField, array: pa.Array) -> Sequence[Any]:
    dtype = field.numpy_dtype
    is_number = dtype is not Decimal and np.dtype(dtype).kind in "biuf"
    if is_number and _is_number(array.type) and not tuple(field.shape):
        if not array.null_count:
            numbers: Any = plain(array).astype(dtype, copy=False)
            return numbers  # type: ignore[no-any-return]
        if kinds.is_floating(array.type):
            floats: Any = plain(array.fill_null(float("nan"))).astype(dtype, copy=False)
            return floats  # type: ignore[no-any-return]
    if dtype is np.datetime64 and kinds.is_timestamp(array.type):
        times: Any = plain(array.view(pa.int64()).fill_null(np.iinfo(np.int64).min)).view(f"M8[{array.type.unit}]")
        return [None if np.isnat(time) else time for time in times]
    if tuple(field.shape) and dtype is not Decimal:
        return [None if value is None else np.array(value, dtype) for value in array.to_pylist()]
    return [None if value is None else dtype(value) for value in array.to_pylist()]


def _is_number(kind: pa.DataType) -> bool:
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind))


def decode_arrays(table: pa.Table, schema: Unischema) -> Columns:
    """Return the columns of a table as arrays; lists of equal length are rows of a matrix.

    Raises:
        DecodeFieldError: If lists have different lengths.
    """
    return {name: _array(name, whole(table[name])) for name in table.schema.names if name in schema.fields}


def _array(name: str, array: pa.Array) -> NDArray[Any]:
    kind = array.type
    if kinds.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if _is_number(kind) and not array.null_count:
        return plain(array).copy()
    if kinds.is_timestamp(kind):
        return plain(array.view(pa.int64()).fill_null(np.iinfo(np.int64).min)).view(f"M8[{kind.unit}]").copy()
    if kinds.is_date32(kind) and not array.null_count:
        return plain(array.view(pa.int32())).astype("M8[D]")
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return _matrix(name, array)
    if (kinds.is_string(kind) or kinds.is_large_string(kind)) and not array.null_count:
        return np.array(array.to_pylist(), np.str_)
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def _matrix(name: str, array: pa.Array) -> NDArray[Any]:
    flat = array.flatten()
    lengths = {len(value) if value is not None else -1 for value in array} if array.null_count else None
    if lengths is None:
        found = np.diff(np.asarray(plain(array.offsets))) if not kinds.is_fixed_size_list(array.type) else None
        lengths = set(np.unique(found).tolist()) if found is not None else {array.type.list_size}
    if len(lengths) > 1:
        shown = ", ".join(map(str, sorted(lengths)))
        raise DecodeFieldError(
            f"Length of all values in column {name!r} are expected to be the same length. "
            f"Got the following set of lengths: {shown}. Make them equal in a TransformSpec, or leave the column out."
        )
    (width,) = lengths or {0}
    return _array(name, flat).reshape(-1, width) if width > 0 else np.empty((len(array), 0))


def arrays_of_frame(frame: Any, schema: Unischema) -> Columns:
    """Return the columns of a DataFrame as arrays of the shapes that a schema says.

    Raises:
        DecodeFieldError: If its columns or their values do not fit the schema.
    """
    names, wanted = set(frame.columns), set(schema.fields)
    if names != wanted:
        raise DecodeFieldError(
            f"Transformed result columns ({', '.join(sorted(map(str, names)))}) do not match required schema columns "
            f"({', '.join(sorted(wanted))}); name what the function adds in edit_fields."
        )
    return {name: _array_of_series(field, frame[name]) for name, field in schema.fields.items()}


def _array_of_series(field: UnischemaField, series: Any) -> NDArray[Any]:
    values: NDArray[Any] = series.to_numpy()
    if tuple(field.shape):
        rows = [np.asarray(value) for value in values]
        shapes = {row.shape for row in rows}
        if len(shapes) > 1 or (None not in field.shape and shapes and shapes != {tuple(field.shape)}):
            raise DecodeFieldError(f"field {field.name} must be the shape {field.shape}; it has {sorted(shapes)}.")
        return np.stack(rows) if rows else np.empty((0, *(length or 0 for length in field.shape)))
    if field.numpy_dtype is np.str_ and not series.isna().any():
        return values.astype(np.str_)
    return values.copy() if not values.flags.writeable else values


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
