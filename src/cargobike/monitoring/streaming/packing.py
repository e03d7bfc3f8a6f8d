"""Tables as bytes, for columns of Spark."""

from __future__ import annotations

import pyarrow as pa


def packed(table: pa.Table) -> bytes:
    """Return a table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def unpacked(data: bytes) -> pa.Table:
    """Return the table that was packed."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()
