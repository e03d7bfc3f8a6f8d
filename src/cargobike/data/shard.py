"""A rank's share of the data that was given to an experiment: what a train function gets as `data`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.feeding import Feed
from cargobike.data.followed import FollowedLoader, source_of
from cargobike.data.loading.options import Options
from cargobike.data.sources.brought import BroughtFiles

_SET_UP: Final = {"options", "stats", "_names", "_sharing", "_position", "_reading"}


class Shard(FollowedLoader):
    """The rows of one rank: all ranks together see every row once, and ranks differ by at most one row.

    A loader with the usual options: iterating yields batches of 1024 rows as dicts of NumPy arrays, and checkpoints
    keep its place. `batches`, `read` and `to_pandas` read the rank's share from its beginning, whatever was iterated.

    Args:
        files: What to read, as it was described.
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
        self._files = files
        self._refusal: InvalidInputError | None = None
        self.rank, self.world_size = rank, world_size
        self.source = source_of(files, root, bring)
        self.total_rows = self.source.num_rows

    def __getattr__(self, name: str) -> Any:
        """Set the loader up when it is first needed: functions that only call `batches` or `read` need fewer files."""
        if name not in _SET_UP or "_position" in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._begin_to_load()
        return getattr(self, name)

    def _begin_to_load(self) -> None:
        try:
            self._set_up(self.source, Options(), self.rank, self.world_size)
        except InvalidInputError as refusal:  # columns that make no arrays can still be read as Arrow
            self._refusal = refusal
            self._set_up(self.source, Options(to="arrow"), self.rank, self.world_size)

    def _check_rows(self) -> None:
        """Accept a rank without rows, which earlier versions did; only iterating over it is refused."""

    @property
    def _begin(self) -> int:
        return self.total_rows * self.rank // self.world_size

    @property
    def _end(self) -> int:
        return self.total_rows * (self.rank + 1) // self.world_size

    @property
    def num_rows(self) -> int:
        """How many rows this rank has."""
        return self._end - self._begin

    def __len__(self) -> int:
        """Return how many rows this rank has; the number of its batches is `steps`."""
        return self.num_rows

    @property
    def steps(self) -> int:
        """How many batches iterating over a whole epoch yields."""
        return super().__len__()

    def __iter__(self) -> Iterator[Any]:
        if "_position" not in self.__dict__:
            self._begin_to_load()
        super()._check_rows()
        if self._refusal is not None:
            raise self._refusal
        return super().__iter__()

    def batches(self, size: int = 1024, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this rank in order, in Arrow batches of `size` rows; the last one may be smaller.

        Only a piece of the data is in memory at a time. May be called again for the next epoch.

        Raises:
            InvalidInputError: If the size is no number of rows, or there is no such column.
        """
        if size < 1:
            raise InvalidInputError(f"size={size} was given; a batch has at least one row.")
        return self._arrow_batches(size, self._checked(columns))

    def _arrow_batches(self, size: int, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        pending: list[Any] = []
        count = 0
        for batch in self._pieces(columns):
            pending.append(batch)
            count += batch.num_rows
            if count < size:
                continue
            table = pa.Table.from_batches(pending).combine_chunks()
            whole = count - count % size
            for start in range(0, whole, size):
                yield table.slice(start, size).to_batches()[0]
            rest = table.slice(whole)
            pending, count = rest.to_batches(), rest.num_rows
        if count:
            yield pa.Table.from_batches(pending).combine_chunks().to_batches()[0]

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of this rank at once."""
        names = self._checked(columns)
        pieces = list(self._pieces(names))
        if pieces:
            return pa.Table.from_batches(pieces)
        if isinstance(self.source, BroughtFiles):
            return self.source.nothing(names)
        return self.source.read(0, names).slice(0, 0)

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
        """Yield the rows of this rank as they lie in the source."""
        if isinstance(self.source, BroughtFiles):
            yield from self.source.pieces(self._begin, self._end, columns)
            return
        first = 0
        for number, group in enumerate(self.source.groups):
            low, high = max(self._begin - first, 0), min(self._end - first, group.rows)
            first += group.rows
            if low < high:
                yield from self.source.read(number, columns).slice(low, high - low).to_batches()
