"""Makes columns of what a function returned, of the types that were announced or that can hold what may come.

Travels to executors by value, which may lack Cargobike: it imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

UNNAMED = "prediction"
"""What a column is called that a function gave no name."""

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError)
_LONGEST_ROW = 200
_DECIMAL = pa.decimal128(38, 18)
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


def as_columns(returned: Any, rows: int) -> dict[str, Any]:
    """Return the columns of what a function returned for so many rows: numbers, a dict of columns, a table.

    Raises:
        ValueError: If there are more or fewer values than rows.
    """
    if isinstance(returned, pa.Table):
        returned = {name: returned.column(name).combine_chunks() for name in returned.schema.names}
    elif isinstance(returned, pa.RecordBatch):
        returned = {name: returned.column(name) for name in returned.schema.names}
    elif hasattr(returned, "columns") and hasattr(returned, "to_dict"):
        returned = {str(name): returned[name] for name in returned.columns}
    elif not isinstance(returned, Mapping):
        returned = {UNNAMED: returned}
    columns = {str(name): _plain(column) for name, column in returned.items()}
    for name, column in columns.items():
        count = len(column) if hasattr(column, "__len__") else None
        if count != rows:
            what = f"{count} values" if count is not None else f"{type(column).__name__}, no values,"
            raise ValueError(f"predict was given {rows} rows and returned {what} of {name!r}: return one for each row")
    return columns


def _plain(column: Any) -> Any:
    """Return values that Arrow can take: tensors as arrays, matrices as lists of rows."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if hasattr(column, "detach"):
        column = column.detach().cpu().numpy()
    elif isinstance(column, Sequence) and any(hasattr(value, "detach") for value in column[:1]):
        column = [value.detach().cpu().numpy() for value in column]
        column = [value.item() if value.ndim == 0 else value for value in column]
    return list(column) if getattr(column, "ndim", 1) > 1 else column


def type_of(values: Any) -> pa.DataType:
    """Return a type that Spark knows and that holds values such as these; the type of nothing if all are missing.

    Raises:
        ValueError: If the values are of no common type.
    """
    try:
        found = _to_array(values).type
    except _REFUSED as problem:
        raise ValueError(f"there is no type for what predict returns: {problem}") from None
    return _widened(found)


def _widened(found: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(found):
        return _widened(found.value_type)
    if pa.types.is_decimal(found):
        return _DECIMAL
    if pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found):
        return pa.list_(_widened(found.value_type))
    return _WIDER.get(found, found)


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return the type that holds the values of both; text if nothing else does."""
    schemas = [pa.schema([("value", one)]) for one in (first, second)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("value").type
    except pa.ArrowTypeError:
        return pa.string()


def common_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return columns that hold what the columns of all hold, such as those of several partitions."""
    types: dict[str, pa.DataType] = {}
    for field in (field for schema in schemas for field in schema):
        types[field.name] = common_type(types.get(field.name, pa.null()), field.type)
    return pa.schema(list(types.items()))


def fitted(values: Any, wanted: pa.DataType, name: str, rows: pa.RecordBatch, first: tuple[int, int]) -> pa.Array:
    """Return values as a column of the wanted type.

    Args:
        values: One for each row.
        wanted: The type.
        name: What the column is called.
        rows: What the values were predicted for.
        first: The partition of the rows, below zero if there are none, and the number of the first of them in it.

    Raises:
        ValueError: If a value does not fit; says which one, and in which row.
    """
    try:
        return _cast(_to_array(values), wanted)
    except _REFUSED:
        pieces = []
        for number, value in enumerate(values):
            plain = value.as_py() if isinstance(value, pa.Scalar) else value.item() if _is_scalar(value) else value
            try:
                pieces.append(_cast(_to_array([plain]), wanted))
            except _REFUSED as problem:
                partition, before = first
                row = _cut(str(rows.slice(number, 1).to_pylist()[0]))
                where = f"row {before + number}" + ("" if partition < 0 else f" of partition {partition}")
                raise ValueError(
                    f"predict returned {name!r} = {_cut(repr(plain))} for {where}, "
                    f"which does not fit {wanted}: {problem}. That row is {row}. "
                    f'Return other values, or say another type, for example output="{name} double".'
                ) from None
        return pa.concat_arrays(pieces)


def _is_scalar(value: Any) -> bool:
    return hasattr(value, "item") and hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0


def _to_array(values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    try:
        array = pa.array(values)
    except _REFUSED:
        array = pa.array(values, from_pandas=True)  # understands pandas' own sign for what is missing
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return an array as another type; only what cannot be told from the result is rounded."""
    found = array.type
    if found == wanted:
        return array
    if pa.types.is_dictionary(found):
        return _cast(array.dictionary_decode(), wanted)
    if pa.types.is_floating(found) and (pa.types.is_integer(wanted) or pa.types.is_decimal(wanted)):
        is_missing = pc.is_nan(array)  # there is no other way to say in floats that an integer is missing
        array = pc.if_else(is_missing, pa.scalar(None, found), array)
    elif pa.types.is_integer(found) and pa.types.is_floating(wanted):
        return array.cast(wanted, safe=False)
    elif pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        if found.tz is None and wanted.tz is not None:
            array = pc.assume_timezone(array, wanted.tz)
        elif found.tz is not None and wanted.tz is None:
            array = pc.local_timestamp(array)
        return array.cast(options=pc.CastOptions(wanted, allow_time_truncate=True))
    return array.cast(wanted)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_ROW else f"{text[:_LONGEST_ROW]}…"
