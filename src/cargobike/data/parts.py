"""Writes Arrow batches as Parquet files, on executors as in the driver, so that types do not depend on the place.

Travels to executors by value, which may lack Cargobike: it imports nothing of ours.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

_ROWS_PER_GROUP = 1 << 16
_BYTES_PER_FILE = 128 << 20


def write_parts(batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: str, stem: str) -> Iterator[str]:
    """Write batches to files that are small enough to be transferred, and yield the name of each that is complete."""
    rest = iter(batches)
    schema = pa.schema([_nullable(field) for field in schema], metadata=schema.metadata)
    for number in itertools.count():
        size = 0
        name = f"{stem}-{number:04d}.parquet"
        with pq.ParquetWriter(os.path.join(folder, name), schema) as writer:
            for batch in rest:
                writer.write_batch(batch.cast(schema), row_group_size=_ROWS_PER_GROUP)
                size += batch.nbytes
                if size > _BYTES_PER_FILE:
                    break
            else:
                size = -1
        yield name
        if size < 0:
            return


def _nullable(field: pa.Field) -> pa.Field:
    """Return a field that may miss values at any depth: a struct that is missing has parts that are missing."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(kind.field(number)) for number in range(kind.num_fields)])
    elif pa.types.is_list(kind):
        kind = pa.list_(_nullable(kind.value_field))
    elif pa.types.is_map(kind):
        kind = pa.map_(_nullable(kind.key_field).with_nullable(False), _nullable(kind.item_field))
    return pa.field(field.name, kind, nullable=True, metadata=field.metadata)


class PartWriter:
    """Writes one partition of a DataFrame from its executor.

    Args:
        folder: Where to write.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows, and yield the names of the files."""
        from pyspark import TaskContext  # noqa: PLC0415 - this runs in Spark's tasks only

        context = TaskContext.get()
        assert context is not None
        first = next(batches, None)
        if first is None:
            return
        # A task may run twice, even at the same time: only the files that the driver hears of belong to the data.
        stem = f"part-{context.partitionId():06d}-{context.taskAttemptId()}"
        for name in write_parts(itertools.chain([first], batches), first.schema, self._folder, stem):
            yield pa.RecordBatch.from_pydict({"name": [name]})


def as_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn each batch into bytes that travel through the driver."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"piece": [sink.getvalue().to_pybytes()]})
