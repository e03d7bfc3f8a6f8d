"""Hashes of the values of Arrow columns, 64 bits each: the same on every machine, in every version.

Which rows have equal keys and how many different values a column has are found by them. They are written to disk, so
they must never change.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]

_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_TEXT: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_WORD: Final = 8
_MASKS: Final = np.array([(1 << (8 * size)) - 1 for size in range(_WORD + 1)], dtype=np.uint64)


def hash_rows(columns: list[Any], salt: int = 0) -> Hashes:
    """Return one hash for each row of columns that are equally long; another salt gives other hashes."""
    total: Hashes | None = None
    for column in columns:
        hashes = hash_values(column)
        total = _mix(hashes + np.uint64(salt)) if total is None else _mix(total * np.uint64(31) + hashes)
    assert total is not None
    return total


def hash_values(column: Any) -> Hashes:
    """Return the hash of each value of an Arrow array; equal values have equal hashes, whatever their width."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    hashes = _hashes(array)
    if array.null_count:
        hashes[pc.is_null(array).to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _hashes(array: Any) -> Hashes:
    kind = array.type
    if pa.types.is_floating(kind):
        values = _filled(array.cast(pa.float64()), 0.0) + 0.0  # -0.0 becomes 0.0
        values[np.isnan(values)] = np.nan
        return _mix(values.view(np.uint64))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hashes_of_bytes(array)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
        numbers = array.cast(pa.int64())
    elif pa.types.is_date32(kind):
        numbers = array.cast(pa.int32()).cast(pa.int64())
    else:
        return _hashes_of_bytes(array.cast(pa.string()))
    return _mix(_filled(numbers, 0).view(np.uint64))


def _filled(array: Any, value: float) -> Any:
    return (pc.fill_null(array, value) if array.null_count else array).to_numpy(zero_copy_only=False)


def _hashes_of_bytes(array: Any) -> Hashes:
    """Hash texts eight bytes at a time, all rows at once; a row drops out when its text ends."""
    if not len(array):
        return np.empty(0, dtype=np.uint64)
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    if array.null_count:
        lengths = np.where(pc.is_null(array).to_numpy(zero_copy_only=False), 0, lengths)
    padded = np.zeros((len(data) if data is not None else 0) + _WORD, dtype=np.uint8)
    if data is not None:
        padded[: len(data)] = np.frombuffer(data, dtype=np.uint8)
    words = np.ndarray((len(padded) - _WORD + 1,), dtype="<u8", buffer=padded, strides=(1,))
    hashes = _mix(lengths.view(np.uint64) ^ _TEXT)
    rows, at = np.nonzero(lengths > 0)[0], 0
    while len(rows):
        left = np.minimum(lengths[rows] - at, _WORD)
        hashes[rows] = _mix(hashes[rows] ^ (words[starts[rows] + at] & _MASKS[left]))
        at += _WORD
        rows = rows[lengths[rows] > at]
    return hashes


def _mix(values: Hashes) -> Hashes:
    """Spread the bits of each value over all bits (the finalizer of splitmix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed
