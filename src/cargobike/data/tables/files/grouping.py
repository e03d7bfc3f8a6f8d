"""Cuts a stream of rows into row groups of about the same number of bytes.

Where a group ends depends on the values alone, not on how they arrived, so that equal tables have equal groups.
Travels to executors by value, which may lack Cargobike: it imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.data.tables.files.digests import map_parts

BYTES_PER_GROUP = 6_000_000
"""Large enough that decoding takes longer than asking, small enough that a loader can hold several and mix them."""
ROWS_PER_GROUP = 1 << 18
_OFFSET = 4


class RowGroup(NamedTuple):
    """Rows that are written together, and how many bytes their values have."""

    rows: pa.Table
    size_bytes: int


def row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[RowGroup]:
    """Yield the rows of batches as groups: as many rows as fit, at least one."""
    pending: list[pa.RecordBatch] = []
    size = count = 0
    for batch in batches:
        ends = np.cumsum(_sizes(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))))
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + BYTES_PER_GROUP - size, side="right"))
            stop = max(min(stop, start + ROWS_PER_GROUP - count), start if count else start + 1)
            if stop > start:
                pending.append(batch.slice(start, stop - start))
                size += int(ends[stop - 1]) - before
                count += stop - start
                start = stop
            if start < batch.num_rows:
                yield RowGroup(pa.Table.from_batches(pending, schema), size)
                pending, size, count = [], 0, 0
    if pending:
        yield RowGroup(pa.Table.from_batches(pending, schema), size)


def _sizes(array: pa.Array) -> Any:
    """Return how many bytes each value has, as values, whatever Arrow needs to hold them."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _sizes(array.storage)
    if pa.types.is_dictionary(kind):
        known = np.append(_sizes(array.dictionary), 0)
        return known[pc.fill_null(array.indices.cast(pa.int64()), len(known) - 1).to_numpy(zero_copy_only=False)]
    if pa.types.is_struct(kind):
        return sum((_sizes(field) for field in array.flatten()), np.zeros(len(array), dtype=np.int64))
    if pa.types.is_map(kind):
        offsets, keys, items = map_parts(array)
        inner = np.concatenate([[0], np.cumsum(_sizes(keys) + _sizes(items))])
        sizes = np.diff(inner[offsets]) + _OFFSET
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), sizes, _OFFSET)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lengths = _numbers(pc.list_value_length(array))
        inner = np.concatenate([[0], np.cumsum(_sizes(array.flatten()))])
        ends = np.cumsum(lengths)
        return inner[ends] - inner[ends - lengths] + _OFFSET
    if pa.types.is_null(kind):
        return np.zeros(len(array), dtype=np.int64)
    try:
        width = max(1, kind.bit_width // 8)
    except ValueError:
        return _numbers(pc.binary_length(array)) + _OFFSET
    return np.full(len(array), width, dtype=np.int64)


def _numbers(lengths: pa.Array) -> Any:
    return pc.fill_null(lengths.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
