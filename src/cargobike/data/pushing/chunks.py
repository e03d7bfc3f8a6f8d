"""Rows in chunks: many at once, so that a row costs what it weighs and not a message of its own.

Rows of a partition may be any objects, since they come from the user's own program and travel to the user's own
function; they are pickled, and read only from connections that have proved to know the node's secret. Tables travel as
Arrow, whole columns at a time.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import cloudpickle

from cargobike.core.errors import InvalidInputError
from cargobike.data.pushing.messages import Form

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_ROWS: Final = 128
MOST_ROWS: Final = 1024
TARGET_BYTES: Final = 1 << 20


class Chunk:
    """Rows that travel together."""

    __slots__ = ("body", "form", "rows")

    def __init__(self, form: Form, body: bytes, rows: int) -> None:
        self.form, self.body, self.rows = form, body, rows


def in_chunks(rows: Iterable[Any]) -> Iterator[Chunk]:
    """Cut rows into chunks of about a mebibyte; Arrow tables and batches among them stay tables.

    Raises:
        InvalidInputError: If a row cannot be pickled.
    """
    size = FIRST_ROWS
    iterator = iter(rows)
    for first in iterator:
        if hasattr(first, "to_pydict") and hasattr(first, "schema"):
            yield from _tables(first)
            continue
        some = [first, *itertools.islice(iterator, size - 1)]
        body = pack(some)
        size = max(1, min(MOST_ROWS, TARGET_BYTES * len(some) // len(body)))
        yield Chunk("objects", body, len(some))


def _tables(table: pa.Table | pa.RecordBatch) -> Iterator[Chunk]:
    size = max(1, min(MOST_ROWS, TARGET_BYTES * table.num_rows // max(1, table.nbytes)))
    for begin in range(0, table.num_rows, size):
        part = table.slice(begin, size)
        yield Chunk("table", _as_arrow(part), part.num_rows)


def _as_arrow(table: pa.Table | pa.RecordBatch) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - only for those who push tables

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def pack(rows: Sequence[Any]) -> bytes:
    """Pickle rows or results.

    Raises:
        InvalidInputError: If one of them cannot be pickled.
    """
    with contextlib.suppress(Exception):  # objects of classes of a script, for one; the other pickler knows more
        return pickle.dumps(rows, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        packed: bytes = cloudpickle.dumps(rows)
    except Exception as error:
        raise InvalidInputError(
            f"Rows of type {type(rows[0]).__name__} cannot be sent: they cannot be pickled ({error})."
        ) from error
    return packed


def unpack(form: Form, body: bytes | bytearray) -> list[Any]:
    """Return the rows of a chunk that came over a proved connection: objects as they were, rows of tables as tuples."""
    if form == "objects":
        rows: list[Any] = pickle.loads(body)
        return rows
    import pyarrow as pa  # noqa: PLC0415 - only for those who push tables

    table = pa.ipc.open_stream(body).read_all()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
