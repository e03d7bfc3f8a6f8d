"""A table that `data.write` made, as a source of rows."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError, nearest, nearest_names
from cargobike.data.sources.listing import is_address
from cargobike.data.sources.parquet import usual_part
from cargobike.data.sources.source import Group, Source, SourceSpec
from cargobike.data.tables.addresses import ID, NAME, split_version
from cargobike.data.tables.listing import tables_in
from cargobike.data.tables.manifest import FileEntry
from cargobike.data.tables.opening import is_table, open_in
from cargobike.data.tables.table import Table
from cargobike.store.files import project
from cargobike.store.history.environment import without_credentials

_MAGIC = re.compile(r"[*?\[]")
_READERS_KEPT = 8
_OPENER = "cargobike.data.sources.table:open_spec"


class TableSource(Source):
    """The rows of a table, a row group at a time; files are opened when their first group is read.

    A file that is not as it was written, in size or in its row groups, is refused by name.

    Args:
        table: The table.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.name = f"{table.name}:{table.version}"
        self.origin = table.origin
        self.schema = table.schema
        self.fingerprint = table.fingerprint
        self._places = [(file, number) for file in table.files for number in range(len(file.groups))]
        self.groups = [
            Group(f"{file.path}, row group {number}", file.groups[number].rows, file.groups[number].size_bytes)
            for file, number in self._places
        ]
        self._fs, self._root = table.address.storage.arrow()
        self._is_local = isinstance(self._fs, LocalFileSystem)
        self._footers: dict[str, pq.FileMetaData] = {}
        self._idle: list[tuple[str, pq.ParquetFile]] = []
        self._lock = threading.Lock()
        if self._is_local:
            self.columns_at_once = usual_part(self.schema)

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one group; only some columns, in the order given, if asked."""
        file, number = self._places[group]
        names = self._checked(columns)
        footer = self._footer(file)
        try:
            with self._reader(file, footer) as reader:
                table = reader.read_row_group(number, columns=names, use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"{self._place(file)}, row group {number}, cannot be read: {error}. "
                f"Look what is wrong with: cargobike data verify {self.name}"
            ) from error
        return table if names is None else table.select(names)

    def check_files(self) -> None:
        """Refuse files that are gone or have another size than was written, without reading them.

        Raises:
            StoreError: Naming the first such file.
        """
        storage, files = self.table.address.storage, self.table.files
        folders = {file.path.rpartition("/")[0] for file in files}
        sizes = {entry.path: entry.size for folder in sorted(folders) for entry in storage.list(folder)}
        for file in files:
            self._check_size(file, sizes.get(file.path))

    def spec(self) -> SourceSpec:
        """Return what opens this table again elsewhere."""
        options: dict[str, object] = {"url": self.table.url, "version": self.table.version}
        return SourceSpec(opener=_OPENER, options=options, fingerprint=self.fingerprint)

    def close(self) -> None:
        """Close the files that are kept open."""
        with self._lock:
            readers = [reader for _, reader in self._idle]
            self._idle.clear()
        for reader in readers:
            reader.close(force=True)

    @contextlib.contextmanager
    def _reader(self, file: FileEntry, footer: pq.FileMetaData) -> Iterator[pq.ParquetFile]:
        """Lend an open file to one thread; the last few stay open for the next group or columns of the same file."""
        with self._lock:
            index = next((index for index, (path, _) in enumerate(self._idle) if path == file.path), None)
            reader = self._idle.pop(index)[1] if index is not None else None
        if reader is None:
            opened = self._fs.open_input_file(self._path(file))
            reader = pq.ParquetFile(opened, metadata=footer, pre_buffer=not self._is_local)
        try:
            yield reader
        except BaseException:
            reader.close(force=True)
            raise
        with self._lock:
            self._idle.append((file.path, reader))
            surplus = self._idle.pop(0)[1] if len(self._idle) > _READERS_KEPT else None
        if surplus is not None:
            surplus.close(force=True)

    def _checked(self, columns: Sequence[str] | None) -> list[str] | None:
        if columns is None:
            return None
        known = self.schema.names
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise InvalidInputError(
                f"The table {self.name} has no such columns; it has {', '.join(map(repr, known))}.",
                [f"{name!r} is unknown.{nearest(str(name), known)}" for name in unknown],
            )
        return list(columns)

    def _footer(self, file: FileEntry) -> pq.FileMetaData:
        """Return the footer of a file, after a look whether the file is as it was written."""
        with self._lock:
            if file.path in self._footers:
                return self._footers[file.path]
        footer = self._read_footer(file)
        with self._lock:
            return self._footers.setdefault(file.path, footer)

    def _read_footer(self, file: FileEntry) -> pq.FileMetaData:
        entry = self.table.address.storage.stat(file.path)
        self._check_size(file, None if entry is None else entry.size)
        try:
            footer = pq.read_metadata(self._path(file), filesystem=self._fs)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"{self._place(file)} is no Parquet file any more: {error}. Write the table again."
            ) from error
        rows = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
        if rows != [group.rows for group in file.groups]:
            raise StoreError(
                f"{self._place(file)} has changed since the table {self.name} was written: its row groups have other "
                "numbers of rows. Write the table again."
            )
        return footer

    def _check_size(self, file: FileEntry, size_bytes: int | None) -> None:
        if size_bytes is None:
            raise StoreError(f"{self._place(file)} is gone, though the table {self.name} lists it.")
        if size_bytes != file.size_bytes:
            raise StoreError(
                f"{self._place(file)} has changed since the table {self.name} was written: it has {size_bytes} bytes "
                f"instead of {file.size_bytes}. Write the table again."
            )

    def _path(self, file: FileEntry) -> str:
        return f"{self._root}/{file.path}"

    def _place(self, file: FileEntry) -> str:
        return f"{without_credentials(self.table.url)}/{file.path}"


def open_spec(options: Mapping[str, Any]) -> TableSource:
    """Open a table again, as `TableSource.spec` describes it."""
    return TableSource(open_in(options["url"], None, options["version"]))


def source_at(text: str) -> TableSource | None:
    """Open what a name, a path or an address means if it is a table; `None` if it can only be something else.

    Raises:
        NotFoundError: If it is a bare name, and neither a table nor a file has it.
    """
    place, _ = split_version(text)
    if _MAGIC.search(str(place)) or (not is_address(text) and os.path.isfile(os.path.expanduser(text))):
        return None
    is_name = "/" not in text and NAME.fullmatch(str(place)) and not os.path.exists(text)
    if not is_name and not is_table(text):
        return None
    try:
        return TableSource(open_in(text, None))
    except NotFoundError as error:
        if is_name and not is_table(place):
            names = [name for name in tables_in(project.current()) if not ID.fullmatch(name)]
            raise NotFoundError(
                f"There is no file and no table {text!r} here.{nearest(str(place), names)} Tables of the project: "
                f"{', '.join(names[:20]) or 'none'}.",
                wanted=text,
                nearest=nearest_names(str(place), names),
            ) from error
        raise
