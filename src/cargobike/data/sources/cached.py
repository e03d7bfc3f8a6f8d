"""A source whose groups are kept on this machine once they were read: for storage that is slow, or costs."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence

import pyarrow as pa

from cargobike.core.errors import StoreError
from cargobike.data.sources.source import Source, SourceSpec
from cargobike.store.files.storage import Storage


class CachedSource(Source):
    """The groups of another source, each read from there once.

    What was read of a source that has changed since is not used. When the cache is full, what does not fit is read
    anew each time; nothing is thrown out.

    Args:
        source: What is read.
        storage: Where groups are kept: a folder of this machine.
        limit_bytes: How much may be kept there in all.
    """

    def __init__(self, source: Source, storage: Storage, limit_bytes: int) -> None:
        self.name, self.schema, self.groups = source.name, source.schema, source.groups
        self.fingerprint, self.origin, self.skips = source.fingerprint, source.origin, source.skips
        self._source = source
        self._storage = storage
        self._lock = threading.Lock()
        self._left = limit_bytes - sum(entry.size for entry in storage.list() if not entry.path.startswith("."))

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return what was kept of a group, or read it and keep it."""
        asked = repr((self.fingerprint, group, None if columns is None else list(columns)))
        path = hashlib.sha256(asked.encode()).hexdigest() + ".arrow"
        kept = self._storage.read(path)
        if kept is not None:
            try:
                return pa.ipc.open_stream(pa.py_buffer(kept)).read_all()
            except (pa.ArrowException, OSError):
                self._storage.delete(path)  # it was cut off, or is something else
        table = self._source.read(group, columns)
        self._keep(path, table)
        return table

    def _keep(self, path: str, table: pa.Table) -> None:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        data = stream.getvalue().to_pybytes()
        with self._lock:
            if len(data) > self._left:
                return
            self._left -= len(data)
        try:
            self._storage.write(path, data)
        except StoreError:  # a full disk: the group was read all the same
            with self._lock:
                self._left = 0

    def spec(self) -> SourceSpec:
        """Return what opens the source that is kept."""
        return self._source.spec()

    def close(self) -> None:
        """Close the source that is kept."""
        self._source.close()
