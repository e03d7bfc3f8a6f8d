"""Parquet files in a folder of the project as a source: each is brought to this machine when it is first read."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.registering.feeding import Feed
from cargobike.data.sources.source import Group, Source, SourceSpec


class BroughtFiles(Source):
    """The files that a feed names, in a project that may be on another machine.

    Args:
        feed: Which files, and how many rows each has; its details may say which groups of rows they consist of.
        root: The project's folder on this machine.
        bring: Makes sure that a file of the project is here.
    """

    def __init__(self, feed: Feed, root: Path, bring: Callable[[str], None]) -> None:
        self.name = feed.label or feed.folder
        self._feed = feed
        self._root = root
        self._bring = bring
        self._lock = threading.Lock()
        self._here: set[str] = set()
        self.fingerprint = feed.fingerprint or _digest(feed)

    @cached_property
    def _parts(self) -> list[tuple[str, int, Group]]:
        """The file of each group, its number in it, and what is known of it."""
        folder, details = self._feed.folder, self._feed.details
        sizes = details.get("groups") or [self._sizes_of(name) for name in self._feed.names]
        return [
            (name, number, Group(f"{folder}/{name}, row group {number}", rows, size_bytes))
            for name, parts in zip(self._feed.names, sizes, strict=True)
            for number, (rows, size_bytes) in enumerate(parts)
            if rows
        ]

    @cached_property
    def groups(self) -> Sequence[Group]:  # type: ignore[override] # found when it is first needed
        """What can be read at once."""
        return [group for _, _, group in self._parts]

    @property
    def num_rows(self) -> int:
        """How many rows there are in all."""
        return self._feed.num_rows

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        with self._open(self._feed.names[0]) as file:
            return file.schema_arrow

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one group; a part of a column is named after a dot."""
        name, number, _ = self._parts[group]
        with self._open(name) as file:
            return _read(file, f"{self._feed.folder}/{name}", number, columns)

    def pieces(self, begin: int, end: int, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield some of the rows, in order; only files and groups that hold them are looked at."""
        first = 0
        for name, rows in zip(self._feed.names, self._feed.rows, strict=True):
            begins, ends = max(begin - first, 0), min(end - first, rows)
            first += rows
            if begins >= ends:
                continue
            with self._open(name) as file:
                position = 0
                for number, (size, _) in enumerate(group_sizes(file.metadata)):
                    low, high = max(begins - position, 0), min(ends - position, size)
                    if low < high:
                        table = _read(file, f"{self._feed.folder}/{name}", number, columns)
                        yield from table.slice(low, high - low).to_batches()
                    position += size

    def nothing(self, columns: Sequence[str] | None) -> pa.Table:
        """Return a table without rows."""
        with self._open(self._feed.names[0]) as file:
            return _read(file, self._feed.names[0], 0, columns).slice(0, 0)

    def spec(self) -> SourceSpec:
        """Refuse: only the trial that they were brought for knows where the files are."""
        raise InvalidInputError(f"{self.name} was brought to this worker, and cannot be opened elsewhere.")

    def _open(self, name: str) -> pq.ParquetFile:
        # Spark's own files, as projects may still hold them, have timestamps that reach further than nanoseconds do.
        return pq.ParquetFile(self._path(name), coerce_int96_timestamp_unit="us")

    def _path(self, name: str) -> Path:
        path = f"{self._feed.folder}/{name}"
        with self._lock:
            if path not in self._here:
                self._bring(path)
                self._here.add(path)
        return self._root / path

    def _sizes_of(self, name: str) -> list[tuple[int, int]]:
        with self._open(name) as file:
            return group_sizes(file.metadata)


def group_sizes(footer: pq.FileMetaData) -> list[tuple[int, int]]:
    """Return how many rows and bytes each group of a file has."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [(group.num_rows, group.total_byte_size) for group in groups]


def _read(file: pq.ParquetFile, place: str, number: int, columns: Sequence[str] | None) -> pa.Table:
    """Read a group; columns come in the order asked for, parts of columns as they lie."""
    try:
        table = file.read_row_group(number, columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{place}, row group {number} cannot be read: {error}. Launch the experiment anew.") from error
    return table if columns is None or set(columns) != set(table.schema.names) else table.select(list(columns))


def _digest(feed: Feed) -> str:
    """Return a digest of what was recorded: files of the project never change."""
    words = f"{feed.folder}\n{feed.names}\n{feed.rows}"
    return hashlib.blake2b(words.encode(), digest_size=16).hexdigest()
