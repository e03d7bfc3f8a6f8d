"""A table in the memory of this process as a source: Arrow, pandas, polars, or NumPy arrays by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.source import Group, Source, SourceSpec
from cargobike.data.tensors import tensor_field

GROUP_BYTES: Final = 8 << 20


class MemorySource(Source):
    """A table in memory, cut into groups of some megabytes.

    Args:
        table: The rows.
        group_rows: How many make a group; by their size in memory by default.
    """

    def __init__(self, table: pa.Table, group_rows: int | None = None) -> None:
        self.name = "a table in memory"
        self.schema = table.schema
        self._table = table
        count = table.num_rows
        if group_rows is None:
            group_rows = max(1, GROUP_BYTES * count // max(table.nbytes, 1))
        self._starts = list(range(0, count, group_rows))
        self.groups = [
            Group(
                f"{self.name}, rows {start:,} to {min(start + group_rows, count):,}", rows, table.nbytes * rows // count
            )
            for start in self._starts
            for rows in [min(group_rows, count - start)]
        ]
        self.fingerprint = _fingerprint(table)

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a slice of the table."""
        rows = self._table.slice(self._starts[group], self.groups[group].rows)
        return rows if columns is None else rows.select(list(columns))

    def spec(self) -> SourceSpec:
        """Refuse: another process cannot see this memory."""
        raise InvalidInputError(
            "This table is only in the memory of this process. Write it first, with data.write(table, name), and give "
            "what that returns."
        )


def as_table(given: object) -> pa.Table | None:
    """Return what a user has in memory as an Arrow table; `None` for what is no table.

    Raises:
        InvalidInputError: If it cannot be one: arrays of different lengths, values that Arrow has no type for.
    """
    try:
        if isinstance(given, pa.Table):
            return given
        if isinstance(given, pa.RecordBatch):
            return pa.Table.from_batches([given])
        if isinstance(given, Mapping):
            return _from_arrays(given)
        library = type(given).__module__.partition(".")[0]
        if library == "pandas" and type(given).__name__ == "DataFrame":
            return pa.Table.from_pandas(given, preserve_index=False).replace_schema_metadata(None)
        if library == "polars" and type(given).__name__ in ("DataFrame", "LazyFrame"):
            frame: Any = given
            return (frame.collect() if type(given).__name__ == "LazyFrame" else frame).to_arrow()
    except (pa.ArrowException, TypeError) as error:
        raise InvalidInputError(f"This {type(given).__name__} cannot become a table: {error}") from error
    return None


def _from_arrays(arrays: Mapping[Any, Any]) -> pa.Table:
    """Return arrays, lists or tensors of torch by name as a table; arrays of more than one dimension as tensors."""
    lengths = {str(name): len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(
            "The arrays have different numbers of rows.", [f"{name!r}: {rows:,}" for name, rows in lengths.items()]
        )
    fields, columns = [], []
    for name, values in arrays.items():
        array = values if isinstance(values, pa.Array | pa.ChunkedArray | list) else np.asarray(values)
        if isinstance(array, np.ndarray) and array.ndim > 1:
            array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            try:
                field = tensor_field(str(name), array.dtype.name, array.shape[1:])
            except KeyError:
                raise InvalidInputError(f"{name!r}: tensors of {array.dtype} cannot be kept in a table.") from None
            column = pa.Array.from_buffers(field.type, len(array), [None, pa.py_buffer(array)])
        else:
            column = array if isinstance(array, pa.Array | pa.ChunkedArray) else pa.array(array)
            field = pa.field(str(name), column.type)
        fields.append(field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _fingerprint(table: pa.Table) -> str:
    """Return a digest of types, number of rows and the rows at both ends: reading all would take too long."""
    digest = hashlib.blake2b(f"{table.schema}\n{table.num_rows}".encode(), digest_size=16)
    for part in (table.slice(0, 256), table.slice(max(table.num_rows - 256, 0))):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part.combine_chunks())
        digest.update(sink.getvalue())
    return digest.hexdigest()
