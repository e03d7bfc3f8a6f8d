"""Writes row groups as Parquet files, on executors as in the driver, so that types do not depend on the place.

Travels to executors by value, which may lack Cargobike: it imports nothing of ours at its top.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.data.tables.files.digests import digest_of
from cargobike.data.tables.files.grouping import RowGroup

BYTES_PER_FILE = 128 << 20
_OPEN_FILES = "/proc/self/fd"
Noted = Callable[[int, int], None]


class Part(NamedTuple):
    """A file that is complete: its name, its size, and rows, bytes and digest of each of its row groups."""

    name: str
    size_bytes: int
    groups: list[tuple[int, int, str]]


class LocalSink:
    """Puts files straight into a folder of this host.

    Args:
        folder: The folder; it is made if it does not exist.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[str]:
        """Give a path to write to; when the block ends, the file is where it belongs and survives a power cut."""
        path = os.path.join(self._folder, name)
        _make(path)
        yield path
        for place, flags in ((path, os.O_RDONLY), (self._folder, os.O_RDONLY | os.O_DIRECTORY)):
            fd = os.open(place, flags)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _make(path: str) -> None:
    """Make an empty file, and the folders above; a delete elsewhere may remove the folder just then, being empty."""
    for attempt in range(3):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
            return
        except FileNotFoundError:
            if attempt == 2:
                raise


class SpoolSink:
    """Writes files on this host first, and sends each whole to a storage.

    Args:
        send: Sends a local file to the storage, by its name.
    """

    def __init__(self, send: Callable[[str, str], None]) -> None:
        self._send = send

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[str]:
        """Give a path to write to; when the block ends, the file is on the storage."""
        if os.path.isdir(_OPEN_FILES):
            with tempfile.TemporaryFile(prefix="cargobike-part-") as file:  # without a name: it goes with the process
                path = f"{_OPEN_FILES}/{file.fileno()}"
                yield path
                self._send(path, name)
            return
        with tempfile.TemporaryDirectory(prefix="cargobike-part-") as folder:
            path = os.path.join(folder, name)
            yield path
            self._send(path, name)


def write_parts(
    groups: Iterable[RowGroup], schema: pa.Schema, sink: Any, stem: str, noted: Noted | None = None
) -> Iterator[Part]:
    """Write row groups to files that are small enough to be transferred, and yield each that is complete.

    Args:
        groups: What to write.
        schema: The columns.
        sink: Where to: a `LocalSink` or a `SpoolSink`.
        stem: What the names of the files begin with.
        noted: Told the rows and bytes of each row group that was written.
    """
    number, rest = 0, iter(groups)
    group = next(rest, None)
    while group is not None:
        name, size, entries = f"{stem}-{number:04d}.parquet", 0, []
        with sink.open(name) as path:
            with pq.ParquetWriter(path, schema, **_options(schema)) as writer:
                while group is not None and size < BYTES_PER_FILE:
                    writer.write_table(group.rows, row_group_size=max(1, group.rows.num_rows))
                    entries.append((group.rows.num_rows, group.size_bytes, digest_of(group.rows)))
                    size += group.size_bytes
                    if noted is not None:
                        noted(group.rows.num_rows, group.size_bytes)
                    group = next(rest, None)
            size = os.path.getsize(path)
        yield Part(name, size, entries)
        number += 1


def _options(schema: pa.Schema) -> dict[str, Any]:
    """Return how to write: numbers and tensors plainly, since dictionaries of them cost more than they save."""
    words = [field.name for field in schema if _repeats(field.type)]
    return {"compression": "snappy", "use_dictionary": words, "write_page_checksum": True, "store_schema": True}


def _repeats(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind))
