"""Bytes as a file of Arrow's."""

from __future__ import annotations

import pyarrow as pa


def in_memory(data: bytes) -> pa.BufferReader:
    """Return a file with these bytes, copied into memory of Arrow's own.

    Memory that belongs to Python is given back under the interpreter's lock. One of Arrow's threads may do that last,
    some time after a table was read; if the program ends just then, the process is aborted instead.
    """
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)
