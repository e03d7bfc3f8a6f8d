"""One version of a table on its way: its files, its claim, and in the end its manifest."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.origins import Origin
from cargobike.core.registering.steps import step_token
from cargobike.core.running.accounts import user_name
from cargobike.core.version import __version__
from cargobike.data.tables.addresses import Address
from cargobike.data.tables.claims import sweep
from cargobike.data.tables.files.digests import fingerprint_of
from cargobike.data.tables.files.grouping import row_groups
from cargobike.data.tables.files.part_files import LocalSink, Part, SpoolSink, write_parts
from cargobike.data.tables.manifest import FileEntry, GroupEntry, Manifest, encode_schema
from cargobike.data.tables.rows.incoming import Incoming
from cargobike.data.tables.rows.shaping import Shaping, cast_batch
from cargobike.data.tables.rows.types import type_text
from cargobike.data.tables.table import Table
from cargobike.data.tables.versions import commit, latest
from cargobike.store.assets.claims import Writing

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Progress(msgspec.Struct, frozen=True):
    """How far a write has come.

    Attributes:
        rows: Rows that were written.
        size_bytes: How many bytes their values have.
        files: Files that are complete.
        total_rows: How many rows there will be, `None` if that is not known.
    """

    rows: int = 0
    size_bytes: int = 0
    files: int = 0
    total_rows: int | None = None


Told = Callable[[Progress], None]


class TableWriter:
    """One version on its way: its files, and in the end its manifest. A `with` block removes what was not committed.

    Args:
        address: Where the table lies.
        source: What it is made from, in a word.
        progress: Told how far it has come.
        total_rows: How many rows there will be, if that is known.
        may_be_empty: Whether a table without rows is one.
        origin: What its rows are read from, if they are not only in memory.
    """

    def __init__(
        self,
        address: Address,
        source: str,
        progress: Told | None = None,
        total_rows: int | None = None,
        *,
        may_be_empty: bool = True,
        origin: Origin | None = None,
    ) -> None:
        self._origin = origin
        self._may_be_empty = may_be_empty
        self._address = address
        self._storage = address.storage
        self._source = source
        self._told = progress
        self._progress = Progress(total_rows=total_rows)
        self._schema: pa.Schema | None = None
        self._files: list[FileEntry] = []
        self._is_committed = False
        self.token = token_hex(6)

    def __enter__(self) -> TableWriter:
        sweep(self._storage)
        self.folder = str(latest(self._storage) + 1)
        self._claim = Writing(self._storage, self.token, self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        kept = {file.path for file in self._files} if self._is_committed else set()
        own = [entry.path for entry in self._storage.list(self.folder) if f"-{self.token}" in entry.path]
        self._storage.delete(*(path for path in own if path not in kept))
        self._claim.end()
        files, root = self._storage.arrow()
        if not kept and isinstance(files, LocalFileSystem):
            with contextlib.suppress(OSError):
                os.rmdir(root)  # only if nothing is in it

    @property
    def place(self) -> str:
        """The table's address, for others that write into its folder."""
        return self._storage.url

    @property
    def claim_path(self) -> str:
        """A file below the table's address that is there while this writer lives."""
        return self._claim.path

    def write(self, incoming: Incoming, types: pa.Schema | None = None) -> None:
        """Write all rows of a stream; once more, with types that hold all of them, if types grew on the way."""
        shaping = Shaping(incoming, types)
        stretches = 0
        for schema, batches in shaping.stretches():
            self._write_batches(schema, batches, stretches)
            stretches += 1
        self._schema = shaping.finish()
        if stretches > 1:
            narrow, self._files = self._files, []
            self._progress = Progress(total_rows=shaping.num_rows)
            self._write_batches(self._schema, self._widened(narrow, self._schema), stretches)

    def add(self, schema: pa.Schema, parts: list[Part]) -> None:
        """Add files that others have written into the table's folder, such as executors."""
        self._schema = schema
        self._files += [self._entry(part) for part in parts]

    def commit(self) -> Table:
        """Make the version visible."""
        assert self._schema is not None
        if not self._may_be_empty and not any(file.rows for file in self._files):
            raise InvalidInputError("The data has no rows.")
        digests = [group.digest for file in self._files for group in file.groups]
        manifest = Manifest(
            name=self._address.name,
            version=1,
            fingerprint=fingerprint_of(self._schema, digests),
            rows=sum(file.rows for file in self._files),
            columns={field.name: type_text(field) for field in self._schema},
            schema=encode_schema(self._schema),
            files=self._files,
            source=self._source,
            token=self.token,
            at=time.time(),
            user=user_name(),
            host=socket.gethostname(),
            cargobike=__version__,
            origin=self._origin,
            step=step_token(),
        )
        self._claim.begin_commit()
        manifest = commit(self._storage, manifest, int(self.folder))
        self._is_committed = True
        return Table(self._address, manifest)

    def _write_batches(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], stretch: int) -> None:
        stem = f"part-{stretch:02d}-{self.token}"
        try:
            for part in write_parts(row_groups(batches, schema), schema, self.sink(), stem, self._note):
                self._files.append(self._entry(part))
                self._tell(files=len(self._files))
        except OSError as error:
            if error.errno not in _FULL or isinstance(error, StoreError):
                raise
            raise StoreError(
                f"There is no room for the table at {self._storage}: {os.strerror(error.errno or 0)}. Nothing of it is "
                "left there. Make room, or write it elsewhere."
            ) from error

    def sink(self) -> LocalSink | SpoolSink:
        """Return what puts files into the folder of this version: on a disk of this host without a detour."""
        files, root = self._storage.arrow()
        if isinstance(files, LocalFileSystem):
            return LocalSink(os.path.join(root, self.folder))
        return SpoolSink(lambda path, name: self._storage.write(f"{self.folder}/{name}", Path(path)))

    def _entry(self, part: Part) -> FileEntry:
        return FileEntry(f"{self.folder}/{part.name}", part.size_bytes, [GroupEntry(*group) for group in part.groups])

    def _widened(self, narrow: list[FileEntry], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield rows that were written with narrower types as they are to be."""
        files, root = self._storage.arrow()
        first = 0
        for entry in narrow:
            with pq.ParquetFile(f"{root}/{entry.path}", filesystem=files) as file:
                for group in range(file.num_row_groups):
                    for batch in file.read_row_group(group).to_batches():
                        yield cast_batch(batch, schema, first)
                        first += batch.num_rows
            self._storage.delete(entry.path)

    def _note(self, rows: int, size_bytes: int) -> None:
        self._claim.renew()
        self._tell(rows=self._progress.rows + rows, size_bytes=self._progress.size_bytes + size_bytes)

    def _tell(self, **changes: int) -> None:
        self._progress = msgspec.structs.replace(self._progress, **changes)
        if self._told is not None:
            self._told(self._progress)
