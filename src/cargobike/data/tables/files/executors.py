"""What runs in Spark's tasks when a DataFrame is written: each writes its partition, if it sees the table's place.

Travels to executors by value, which may lack Cargobike: it imports nothing of ours at its top but what travels along.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from cargobike.data.tables.files.grouping import row_groups
from cargobike.data.tables.files.part_files import LocalSink, SpoolSink, write_parts


class PartWriter:
    """Writes one partition of a DataFrame from its executor.

    Args:
        place: The table's address: a folder or a URL.
        folder: The folder below it to write to.
        token: What the names of the files hold.
        schema: The columns.
    """

    def __init__(self, place: str, folder: str, token: str, schema: pa.Schema) -> None:
        self._place = place
        self._folder = folder
        self._token = token
        self._schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows, and yield descriptions of the files."""
        from pyspark import TaskContext  # noqa: PLC0415 - this runs in Spark's tasks only

        context = TaskContext.get()
        assert context is not None
        # A task may run twice, even at the same time: only the files that the driver hears of belong to the table.
        stem = f"part-{context.partitionId():06d}-{self._token}-{context.taskAttemptId()}"
        groups = row_groups((batch.cast(self._schema) for batch in batches), self._schema)
        for part in write_parts(groups, self._schema, self._sink(), stem):
            yield pa.RecordBatch.from_pydict({"part": [json.dumps(part)]})

    def _sink(self) -> Any:
        if "://" not in self._place:
            return LocalSink(os.path.join(self._place, self._folder))
        from cargobike.store.files.storages import open_storage  # noqa: PLC0415 - only where Cargobike is installed

        storage = open_storage(self._place)
        return SpoolSink(lambda path, name: storage.write(f"{self._folder}/{name}", Path(path)))


class Seeing:
    """Tells whether an executor sees a file of the table's place.

    Args:
        place: The table's address: a folder or a URL.
        path: A file below it.
    """

    def __init__(self, place: str, path: str) -> None:
        self._place = place
        self._path = path

    def __call__(self, _: int) -> bool:
        """Look for the file; an executor that lacks a library or credentials does not see it."""
        if "://" not in self._place:
            return os.path.exists(os.path.join(self._place, self._path))
        try:
            from cargobike.store.files.storages import open_storage  # noqa: PLC0415 - it may be missing here

            return open_storage(self._place, timeout_s=10.0).stat(self._path) is not None
        except Exception:  # noqa: BLE001 - whatever it is, the driver writes instead
            return False


def as_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn each batch into bytes that travel through the driver."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"piece": [sink.getvalue().to_pybytes()]})
