"""Columns from Python's values and NumPy's arrays: tensors as they are stored, everything else as Arrow infers it."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.data.tensors import tensor_field, tensor_of

_REFUSED = (pa.ArrowException, OverflowError, TypeError, ValueError)
_LONGEST = 80


def batch_of(columns: Mapping[str, Any], first_row: int, types: pa.Schema | None = None) -> pa.RecordBatch:
    """Return columns of values as a batch.

    Args:
        columns: Arrays or lists by name, all equally long.
        first_row: The number of the first row, for errors.
        types: What some columns are to be; others are inferred.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name!r} has {count}" for name, count in lengths.items())
        raise InvalidInputError(f"The columns from row {first_row} on are not equally long: {found}.")
    fields, arrays = [], []
    for name, values in columns.items():
        index = types.get_field_index(str(name)) if types is not None else -1
        field, array = column_of(str(name), values, first_row, types.field(index) if types and index >= 0 else None)
        fields.append(field)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def column_of(name: str, values: Any, first_row: int, wanted: pa.Field | None = None) -> tuple[pa.Field, pa.Array]:
    """Return one column of values: a field and an array; arrays in rows, or of two and more axes, are tensors.

    Raises:
        InvalidInputError: If values are of no common type or shape; names row and column.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return pa.field(name, values.type), values
    is_tensor = wanted is None or tensor_of(wanted) is not None
    if isinstance(values, np.ndarray) and values.ndim > 1 and is_tensor:
        return _tensors(name, values, first_row, wanted)
    if isinstance(values, np.ndarray) and values.ndim > 1:
        values = list(values)
    if not isinstance(values, np.ndarray):
        values = [_plain(value) for value in values]
        if is_tensor and (shaped := _stacked(name, values, first_row, wanted)) is not None:
            return shaped
        values = [value.tolist() if isinstance(value, np.ndarray) and value.ndim > 1 else value for value in values]
    elif values.dtype.kind in "SV" and values.dtype.names is None:
        values = values.tolist()
    kind = wanted.type if wanted is not None else None
    array = _array(name, values, first_row, kind)
    return (wanted if wanted is not None else pa.field(name, array.type)), array


def _plain(value: Any) -> Any:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _stacked(name: str, values: list[Any], first_row: int, wanted: pa.Field | None) -> tuple[pa.Field, pa.Array] | None:
    """Return arrays of one shape as a column of tensors; `None` if they are no tensors."""
    shaped = next((value for value in values if isinstance(value, np.ndarray)), None)
    if shaped is None and wanted is None:
        return None
    tensor = tensor_of(wanted) if wanted is not None else None
    shape = tensor.shape if tensor is not None else shaped.shape  # type: ignore[union-attr]
    dtype = np.dtype(tensor.dtype) if tensor is not None else shaped.dtype  # type: ignore[union-attr]
    if tensor is None and shaped is not None and shaped.ndim == 1 and _shapes(values) > 1:
        return None  # lists of different lengths
    for number, value in enumerate(values):
        if value is not None and (not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != dtype):
            found = f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else _cut(value)
            raise InvalidInputError(
                f"Row {first_row + number} has {found} in column {name!r}; the rows before have tensors "
                f"{dtype}{tuple(shape)}. Make all of one shape and type, or say that they are lists: "
                f"schema=pa.schema([({name!r}, pa.list_(…))])."
            )
    blank = np.zeros(shape, dtype=dtype)
    block = (
        np.stack([blank if value is None else value for value in values]) if values else np.zeros((0, *shape), dtype)
    )
    missing = np.array([value is None for value in values], dtype=bool)
    return _tensors(name, block, first_row, wanted, missing if missing.any() else None)


def _shapes(values: Sequence[Any]) -> int:
    return len({value.shape for value in values if isinstance(value, np.ndarray)})


def _tensors(
    name: str, block: Any, first_row: int, wanted: pa.Field | None, missing: Any = None
) -> tuple[pa.Field, pa.Array]:
    """Return an array whose first axis are the rows as a column of tensors."""
    block = np.ascontiguousarray(block).astype(block.dtype.newbyteorder("<"), copy=False)
    try:
        field = tensor_field(name, block.dtype.name, block.shape[1:])
    except KeyError:
        raise InvalidInputError(
            f"Column {name!r} has tensors of {block.dtype} from row {first_row} on; they may hold integers, floats of "
            "16 to 64 bits, or truth values. Convert them first: array.astype(…)."
        ) from None
    if wanted is not None and tensor_of(wanted) != tensor_of(field):
        raise InvalidInputError(
            f"Column {name!r} has tensors {block.dtype}{block.shape[1:]} from row {first_row} on; the rows before, or "
            f"schema=, say {tensor_of(wanted)}."
        )
    validity = None
    if missing is not None:
        validity = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    return field, pa.Array.from_buffers(field.type, len(block), [validity, pa.py_buffer(block)])


def _array(name: str, values: Any, first_row: int, kind: pa.DataType | None) -> pa.Array:
    try:
        array = pa.array(values, type=kind)
    except _REFUSED as error:
        number = _first_refused(values, kind)
        value = values[number]
        before = f"the rows before have {pa.array(values[:number], type=kind).type}" if number else "it has no type"
        wanted = f"{kind} was asked for" if kind is not None else before
        raise InvalidInputError(
            f"Row {first_row + number} has {_cut(value)} in column {name!r}, which does not fit: {wanted} ({error}). "
            "Give all rows one type, or say the type that holds them: schema=pa.schema([…])."
        ) from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _first_refused(values: Any, kind: pa.DataType | None) -> int:
    """Return the number of the first value with which the values up to it have no common type."""

    def is_refused(count: int) -> bool:
        try:
            pa.array(values[: count + 1], type=kind)
        except _REFUSED:
            return True
        return False

    return bisect.bisect_left(range(len(values) - 1), True, key=is_refused)


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
