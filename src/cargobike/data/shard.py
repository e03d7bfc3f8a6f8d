"""A rank's share of the data that was given to an experiment: what a train function gets as `data`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cargobike.core.errors import InvalidInputError, MissingLibraryError, nearest
from cargobike.core.registering.feeding import Feed

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


class Shard:
    """The rows of one rank: all ranks together see every row once, and ranks differ by at most one row.

    Args:
        files: Where the data lies.
        root: The project's folder on this machine.
        rank: Which rank this is.
        world_size: How many ranks there are.
        bring: Makes sure that a file is on this machine.

    Attributes:
        rank: Which rank this is.
        world_size: How many ranks there are.
        num_rows: How many rows this rank has.
        total_rows: How many rows there are in all.
    """

    def __init__(self, files: Feed, root: Path, rank: int, world_size: int, bring: Callable[[str], None]) -> None:
        self.rank, self.world_size = rank, world_size
        self._files = files
        self._root = root
        self._bring = bring
        self.total_rows = sum(files.rows)
        self._begin = self.total_rows * rank // world_size
        self._end = self.total_rows * (rank + 1) // world_size

    @property
    def num_rows(self) -> int:
        """How many rows this rank has."""
        return self._end - self._begin

    def __len__(self) -> int:
        return self.num_rows

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        with self._open(self._files.names[0]) as file:
            return file.schema_arrow

    def batches(self, size: int = 1024, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this rank in order, in Arrow batches of `size` rows; the last one may be smaller.

        Only a piece of the data is in memory at a time. May be called again for the next epoch.

        Raises:
            InvalidInputError: If the size is no number of rows, or there is no such column.
        """
        if size < 1:
            raise InvalidInputError(f"size={size} was given; a batch has at least one row.")
        return self._batches(size, self._checked(columns))

    def _batches(self, size: int, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        arrow = _arrow()
        pending: list[Any] = []
        count = 0
        for batch in self._pieces(columns):
            pending.append(batch)
            count += batch.num_rows
            if count < size:
                continue
            table = arrow.Table.from_batches(pending).combine_chunks()
            whole = count - count % size
            for start in range(0, whole, size):
                yield table.slice(start, size).to_batches()[0]
            rest = table.slice(whole)
            pending, count = rest.to_batches(), rest.num_rows
        if count:
            yield arrow.Table.from_batches(pending).combine_chunks().to_batches()[0]

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of this rank at once."""
        names = self._checked(columns)
        pieces = list(self._pieces(names))
        if pieces:
            return _arrow().Table.from_batches(pieces)
        with self._open(self._files.names[0]) as file:
            return _in_order(file.read(columns=names), names).slice(0, 0)

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        """Return all rows of this rank as a pandas DataFrame."""
        return self.read(columns).to_pandas()

    def _checked(self, columns: Sequence[str] | None) -> list[str] | None:
        """Return the names of columns, all of which exist; a part of one is named after a dot."""
        if columns is None:
            return None
        if isinstance(columns, str):
            raise InvalidInputError(f"columns={columns!r} was given; give a list of names: columns=[{columns!r}].")
        known = self.schema.names
        names = list(columns)
        unknown = [name for name in names if name not in known and str(name).partition(".")[0] not in known]
        if unknown:
            raise InvalidInputError(
                f"The data has no such columns; it has {', '.join(map(repr, known))}.",
                [f"{name!r} is unknown.{nearest(str(name), known)}" for name in unknown],
            )
        return names

    def _pieces(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this rank as they lie in the files."""
        first = 0
        for name, rows in zip(self._files.names, self._files.rows, strict=True):
            begin, end = max(self._begin - first, 0), min(self._end - first, rows)
            first += rows
            if begin >= end:
                continue
            with self._open(name) as file:
                position = 0
                for group in range(file.num_row_groups):
                    size = file.metadata.row_group(group).num_rows
                    low, high = max(begin - position, 0), min(end - position, size)
                    if low < high:
                        table = _in_order(file.read_row_group(group, columns=columns), columns)
                        yield from table.slice(low, high - low).to_batches()
                    position += size

    def _open(self, name: str) -> contextlib.closing[Any]:
        # Spark's own files, as projects may still hold them, have timestamps that reach further than nanoseconds do.
        return contextlib.closing(_parquet().ParquetFile(self._path(name), coerce_int96_timestamp_unit="us"))

    def _path(self, name: str) -> Path:
        path = f"{self._files.folder}/{name}"
        self._bring(path)
        return self._root / path


def _in_order(table: Any, columns: list[str] | None) -> Any:
    """Return the columns of a table in the order in which they were asked for; parts of columns come as they lie."""
    return table if columns is None or set(columns) != set(table.schema.names) else table.select(columns)


def _arrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415 - only experiments with data need it
    except ImportError as error:
        raise MissingLibraryError(
            'Data is read with pyarrow, which is not installed here: pip install "cargobike[spark]".',
            name="pyarrow",
        ) from error
    return pyarrow


def _parquet() -> Any:
    _arrow()
    import pyarrow.parquet  # noqa: PLC0415

    return pyarrow.parquet
