"""A digest of the values of a row group, the same however Arrow holds them in memory; fingerprints made from digests.

Travels to executors by value, which may lack Cargobike: it imports nothing of ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HEX = 32


def digest_of(table: pa.Table) -> str:
    """Return the digest of the rows of a table, in their order; names and types of columns are not part of it."""
    hasher = hashlib.sha256()
    for column in table.columns:
        hasher.update(b"\x00column")
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        _add(hasher, pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array)
    return hasher.hexdigest()[:_HEX]


def fingerprint_of(schema: pa.Schema, digests: Iterable[str]) -> str:
    """Return the fingerprint of a table: names, types and shapes of its columns, and the digests of its row groups."""
    hasher = hashlib.sha256()
    for field in schema:
        tensor = (field.metadata or {}).get(b"cargobike.tensor", b"")
        for part in (field.name.encode("utf-8", "surrogatepass"), str(field.type).encode(), tensor):
            hasher.update(len(part).to_bytes(8, "little"))
            hasher.update(part)
    for digest in digests:
        hasher.update(digest.encode())
    return hasher.hexdigest()[:_HEX]


def _add(hasher: Any, array: pa.Array) -> None:
    """Add the values of an array: how many, which are missing, then those that are there."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        _add(hasher, array.dictionary_decode())
        return
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, kind.storage_type
    hasher.update(len(array).to_bytes(8, "little"))
    if pa.types.is_null(kind):
        return
    if array.null_count:
        hasher.update(np.packbits(array.is_valid().to_numpy(zero_copy_only=False)))
        array = array.drop_null()
    else:
        hasher.update(b"\xff")
    if pa.types.is_struct(kind):
        for field in array.flatten():
            _add(hasher, field)
    elif pa.types.is_map(kind):
        offsets, keys, items = map_parts(array)
        hasher.update(np.ascontiguousarray(np.diff(offsets), dtype="<i8"))
        _add(hasher, keys)
        _add(hasher, items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        _add_lengths(hasher, pc.list_value_length(array))
        _add(hasher, array.flatten())
    elif _has_lengths(kind):
        _add_lengths(hasher, pc.binary_length(array))
        hasher.update(_joined(array))
    elif pa.types.is_boolean(kind):
        hasher.update(np.packbits(array.to_numpy(zero_copy_only=False)))
    else:
        hasher.update(_fixed(array))


def map_parts(array: Any) -> tuple[Any, pa.Array, pa.Array]:
    """Return where each of some maps begins and ends among keys and items, and these, from the first to the last."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype("int64")
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - start, array.keys.slice(start, count), array.items.slice(start, count)


def _has_lengths(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    )


def _add_lengths(hasher: Any, lengths: pa.Array) -> None:
    hasher.update(np.ascontiguousarray(lengths.to_numpy(zero_copy_only=False), dtype="<i8"))


def _joined(array: pa.Array) -> memoryview:
    """Return the bytes of all values, one behind the other, without a copy."""
    if not len(array):
        return memoryview(b"")
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, dtype="<i8" if wide else "<i4")[array.offset : array.offset + len(array) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])] if data is not None else memoryview(b"")


def _fixed(array: pa.Array) -> memoryview:
    """Return the bytes of all values of a type whose values are all of one size, without a copy."""
    width = array.type.byte_width
    data = array.buffers()[1]
    if data is None:
        return memoryview(b"")
    return memoryview(data)[array.offset * width : (array.offset + len(array)) * width]
