"""Parquet files as a source: local or behind any address, read in place, footers once."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from cargobike.core.errors import InvalidInputError, StoreError, WaitError, nearest
from cargobike.data.sources.listing import File, files_of
from cargobike.data.sources.source import Group, Source, SourceSpec

_FOOTERS_AT_ONCE: Final = 16
_READERS_KEPT: Final = 8
_PARTS: Final = 2
_LEAST_COLUMNS: Final = 4


def usual_part(schema: pa.Schema) -> int:
    """Return how many columns of a row group on a local disk are decoded at once: less memory, and hardly slower."""
    return max(_LEAST_COLUMNS, -(-len(schema) // _PARTS))


class _Part(NamedTuple):
    """A row group: its file and its number in it."""

    file: int
    number: int


class RowGroup(NamedTuple):
    """Where a group lies."""

    file: File
    number: int
    """Its number in the file."""
    position: int
    """Its number among the row groups of all files, the empty ones too."""


class ParquetSource(Source):
    """Row groups of Parquet files that have the same columns.

    Args:
        files: Which files, in order.
        name: What people call them.
        opened_by: What opens them again elsewhere: paths, globs, addresses; `None` if only this process can.

    Raises:
        StoreError: If a file is not a whole Parquet file.
        InvalidInputError: If two files have different columns.
    """

    def __init__(self, files: Sequence[File], name: str, opened_by: Sequence[str] | None = None) -> None:
        self.name = name
        self._files = list(files)
        self._opened_by = opened_by
        self._lock = threading.Lock()
        self._idle: dict[int, list[pq.ParquetFile]] = {}
        with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, max(len(files), 1))) as threads:
            self._footers = list(threads.map(_footer, self._files))
        self.schema = _one_schema(self._files, self._footers)
        self._parts: list[_Part] = []
        self.groups: list[Group] = []
        for index, (file, footer) in enumerate(zip(self._files, self._footers, strict=True)):
            for number in range(footer.num_row_groups):
                rows = footer.row_group(number)
                if rows.num_rows:
                    self._parts.append(_Part(index, number))
                    self.groups.append(Group(f"{file.shown}, row group {number}", rows.num_rows, rows.total_byte_size))
        self.fingerprint = self._digest()
        if all(file.is_local for file in self._files):
            self.columns_at_once = usual_part(self.schema)

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Decode one row group."""
        part = self._parts[group]
        names = None if columns is None else list(dict.fromkeys(columns))
        with self._reader(part.file, self.groups[group].place) as reader:
            table = reader.read_row_group(part.number, columns=names, use_threads=False)
        if table.num_rows != self.groups[group].rows:
            raise StoreError(
                f"{self.groups[group].place} has {table.num_rows:,} rows, and not as many as its footer says."
            )
        return table if columns is None else table.select(list(columns))

    def row_group(self, group: int) -> RowGroup:
        """Return in which file a group lies."""
        part = self._parts[group]
        before = sum(footer.num_row_groups for footer in self._footers[: part.file])
        return RowGroup(self._files[part.file], part.number, before + part.number)

    def row_groups_per_file(self) -> dict[str, int]:
        """Return how many row groups each file has, the empty ones too, by its path below what was opened."""
        counts = zip(self._files, self._footers, strict=True)
        return {file.relative: footer.num_row_groups for file, footer in counts}

    def spec(self) -> SourceSpec:
        """Return the paths, to be listed again elsewhere."""
        if self._opened_by is None:
            raise InvalidInputError(f"{self.name} was opened in a way that only this process can repeat.")
        return SourceSpec(
            opener="cargobike.data.sources.parquet:open_parquet",
            options={"paths": list(self._opened_by)},
            fingerprint=self.fingerprint,
        )

    def close(self) -> None:
        """Close the files that are kept open."""
        with self._lock:
            readers = [reader for each in self._idle.values() for reader in each]
            self._idle.clear()
        for reader in readers:
            reader.close(force=True)

    @contextlib.contextmanager
    def _reader(self, index: int, place: str) -> Iterator[pq.ParquetFile]:
        """Lend an open file to one thread; some are kept open for the next group of the same file."""
        file = self._files[index]
        with self._lock:
            idle = self._idle.get(index)
            reader = idle.pop() if idle else None
        try:
            if reader is None:
                reader = self._open(index)
            yield reader
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, StoreError | WaitError):
                raise
            if reader is not None:
                reader.close(force=True)
            raise StoreError(_why(file, error, place)) from error
        with self._lock:
            kept = sum(map(len, self._idle.values()))
            if kept < _READERS_KEPT:
                self._idle.setdefault(index, []).append(reader)
                return
            oldest = next(number for number, readers in self._idle.items() if readers)
            surplus = self._idle[oldest].pop()
            self._idle.setdefault(index, []).append(reader)
        surplus.close(force=True)

    def _open(self, index: int) -> pq.ParquetFile:
        file = self._files[index]
        now = file.now()
        if now != (file.size, file.changed_ns):
            raise StoreError(
                f"{file.shown} has changed since it was opened. Open it again; to keep versions of a table apart, "
                "write it with data.write."
            )
        return pq.ParquetFile(
            file.system.open_input_file(file.path),
            metadata=self._footers[index],
            pre_buffer=not file.is_local,
            coerce_int96_timestamp_unit="us",  # Spark's timestamps reach further than nanoseconds do
        )

    def _digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for file, footer in zip(self._files, self._footers, strict=True):
            digest.update(f"{file.relative}\0{file.size}\0{file.changed_ns}\0{footer.num_rows}\n".encode())
        return digest.hexdigest()


def open_parquet(options: Mapping[str, Any]) -> ParquetSource:
    """Open files again from what `spec` said of them."""
    return parquet_at(options["paths"])


def parquet_at(paths: Sequence[str]) -> ParquetSource:
    """Open the files that paths, globs, folders and addresses name.

    Raises:
        NotFoundError: If there are none.
    """
    files = [file for path in paths for file in files_of(path, (".parquet", ".pq"))]
    shown = str(files[0].origin) if len(paths) == 1 else f"{files[0].origin} and {len(paths) - 1} more"
    return ParquetSource(files, shown, list(paths))


def open_parquet_files(system: Any, sizes: Mapping[str, int], name: str) -> ParquetSource:
    """Return the rows of Parquet files that another product keeps on a file system of its own.

    Args:
        system: A file system of `pyarrow.fs`; reading may take as long as it takes the content to come.
        sizes: The bytes of each file, by its path there.
        name: What people call them.
    """
    files = []
    for path, size in sizes.items():
        info = system.get_file_info(path)
        files.append(File(system, path, path, f"{name}/{path}", size, info.mtime_ns or 0, name))
    return ParquetSource(files, name)


def _footer(file: File) -> pq.FileMetaData:
    try:
        with file.system.open_input_file(file.path) as opened:
            return pq.read_metadata(opened)
    except WaitError:
        raise  # of files that are still arriving: nothing is wrong with what came
    except (pa.ArrowException, OSError) as error:
        raise StoreError(_why(file, error)) from error


def _why(file: File, error: Exception, place: str = "") -> str:
    words = str(error).strip().rstrip(".").splitlines()[0]
    return (
        f"{place or file.shown} ({file.size:,} bytes) cannot be read as Parquet: {words}. Was it cut off or damaged "
        "while it was written or copied? Write it again, or read what is whole with Loader(on_error='skip')."
    )


def _one_schema(files: Sequence[File], footers: Sequence[pq.FileMetaData]) -> pa.Schema:
    """Return the columns that all files have; they may stand in another order."""
    schemas = [_schema_of(footer) for footer in footers]
    first = schemas[0]
    types = {field.name: field.type for field in first}
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        if schema.equals(first):
            continue
        mistakes = [
            f"{name!r} is missing in {file.shown}.{nearest(name, [each for each in schema.names if each not in types])}"
            for name in types
            if name not in schema.names
        ]
        for field in schema:
            if field.name not in types:
                mistakes.append(f"{field.name!r} is only in {file.shown}.")
            elif field.type != types[field.name]:
                mistakes.append(
                    f"{field.name!r} is {types[field.name]} in {files[0].shown} and {field.type} in {file.shown}."
                )
        if mistakes:
            raise InvalidInputError(
                f"{files[0].shown} and {file.shown} have different columns; give files that have the same.", mistakes
            )
    return first


def _schema_of(footer: pq.FileMetaData) -> pa.Schema:
    schema = footer.schema.to_arrow_schema()
    return pa.schema(
        [
            pa.field(field.name, pa.timestamp("us"), field.nullable) if _is_int96(footer, field) else field
            for field in schema
        ]
    )


def _is_int96(footer: pq.FileMetaData, field: pa.Field) -> bool:
    if not pa.types.is_timestamp(field.type):
        return False
    columns = [footer.schema.column(number) for number in range(len(footer.schema))]
    return any(column.path == field.name and column.physical_type == "INT96" for column in columns)
