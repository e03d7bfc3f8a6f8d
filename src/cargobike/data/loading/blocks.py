"""Where decoded groups wait for their rows to be taken: a fixed number of places, used again and again.

Batches are copied out of the blocks and belong to the user. The copy is what a shuffle is anyway, and costs a tenth of
decoding; in exchange a batch that is kept never changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cargobike.data.loading.columns import RAGGED_LISTS, Column
from cargobike.data.loading.decoding import Problem, decode

Rows = NDArray[np.int64] | slice
"""Which rows of all blocks, in order."""


class Blocks(ABC):
    """Places for groups.

    `put` is called by threads, each for a place of its own; everything else by the thread that takes batches. First
    `enter` says which rows come next, then each batch is begun, filled with stretches of them, and finished.
    """

    nbytes: int
    """How much memory the places take."""
    takes_parts: bool
    """Whether a group may be put in several times, each time with some of its columns."""

    @abstractmethod
    def put(self, place: int, table: pa.Table) -> list[Problem]:
        """Decode a group into a place; returns what is wrong with some of its rows."""

    def put_nothing(self, place: int, rows: int) -> None:  # noqa: B027 - what is there need not be changed
        """Note that a place holds so many rows that could not be read; they are never taken."""

    @abstractmethod
    def bases(self, places: Sequence[int]) -> list[int]:
        """Return the number of the first row of each of these places, in which the next rows lie."""

    @abstractmethod
    def enter(self, rows: Rows) -> None:
        """Take these rows from now on."""

    @abstractmethod
    def begin_batch(self, size: int) -> Any:
        """Return an empty batch of so many rows."""

    @abstractmethod
    def fill(self, batch: Any, at: int, begin: int, end: int) -> None:
        """Copy some of the rows that were entered to a batch."""

    @abstractmethod
    def finish(self, batch: Any, size: int) -> Any:
        """Return a batch, of which `size` rows were filled."""

    @abstractmethod
    def first_row(self, batch: Any) -> Any:
        """Return a copy of the first row of a batch, as a batch."""


class NumpyBlocks(Blocks):
    """Rows side by side in one array for each column, so that a batch is gathered from all groups at once."""

    def __init__(self, columns: Sequence[Column], places: int, rows: int, *, pad: bool) -> None:
        self.takes_parts = True
        self._columns = columns
        self._rows = rows
        self._pad = pad
        self._arrays = {column.name: np.empty((places * rows, *column.shape), column.stored) for column in columns}
        self._entered: Rows = slice(0, 0)
        self.nbytes = sum(array.nbytes for array in self._arrays.values())

    def put(self, place: int, table: pa.Table) -> list[Problem]:
        """Decode a group into its stretch of each array."""
        problems: list[Problem] = []
        begin = place * self._rows
        for column in self._columns:
            into = self._arrays[column.name][begin : begin + table.num_rows]
            problems += decode(column, table, into)
        return problems

    def bases(self, places: Sequence[int]) -> list[int]:
        """Return where the stretch of each place begins."""
        return [place * self._rows for place in places]

    def enter(self, rows: Rows) -> None:
        """Take these rows from now on."""
        self._entered = rows

    def begin_batch(self, size: int) -> dict[str, NDArray[Any]]:
        """Return arrays whose values are not set yet."""
        return {column.name: np.empty((size, *column.shape), column.stored) for column in self._columns}

    def fill(self, batch: dict[str, NDArray[Any]], at: int, begin: int, end: int) -> None:
        """Gather rows straight into the batch."""
        rows = self._entered
        until = at + end - begin
        if isinstance(rows, slice):
            for name, array in self._arrays.items():
                batch[name][at:until] = array[rows.start + begin : rows.start + end]
            return
        wanted = rows[begin:end]
        for name, array in self._arrays.items():
            # "clip" lets NumPy write where the rows are to be, instead of into a copy; no number is out of bounds.
            array.take(wanted, 0, batch[name][at:until], "clip")

    def finish(self, batch: dict[str, NDArray[Any]], size: int) -> dict[str, NDArray[Any]]:
        """Return the arrays, cut to the rows that there are."""
        finished = {name: array if len(array) == size else array[:size] for name, array in batch.items()}
        if self._pad:
            for column in self._columns:
                if column.kind == RAGGED_LISTS:
                    finished[column.name] = _padded(finished[column.name], column.dtype)
        return finished

    def first_row(self, batch: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return a copy of the first row."""
        return {name: array[:1].copy() for name, array in batch.items()}


class ArrowBlocks(Blocks):
    """Groups as Arrow tables, whose rows are taken for a whole visit at once; batches are slices of that."""

    def __init__(self, columns: Sequence[Column], places: int) -> None:
        self.takes_parts = False
        self._fields = [column.fields[0] for column in columns]
        self._names = [column.fields[0].name for column in columns]
        self._renamed = [column.name for column in columns]
        self._tables: list[pa.Table | None] = [None] * places
        self._visited: pa.Table | None = None
        self._taken: pa.Table | None = None
        self.nbytes = 0

    def put(self, place: int, table: pa.Table) -> list[Problem]:
        """Keep a group as it was read."""
        self._tables[place] = table.select(self._names).rename_columns(self._renamed)
        self.nbytes = max(self.nbytes, sum(each.nbytes for each in self._tables if each is not None))
        return []

    def put_nothing(self, place: int, rows: int) -> None:
        """Keep nulls in its place, so that rows are counted alike."""
        nulls = [pa.nulls(rows, field.type) for field in self._fields]
        self._tables[place] = pa.table(nulls, names=self._renamed)

    def bases(self, places: Sequence[int]) -> list[int]:
        """Lay the groups of a visit end to end; returns where each begins."""
        tables = [self._tables[place] for place in places]
        self._visited = pa.concat_tables([table for table in tables if table is not None])
        ends = np.cumsum([0, *(0 if table is None else table.num_rows for table in tables)])
        return [int(end) for end in ends[:-1]]

    def enter(self, rows: Rows) -> None:
        """Take rows of the visit, all at once."""
        visited = self._visited
        assert visited is not None
        if isinstance(rows, slice):
            self._taken = visited.slice(rows.start, rows.stop - rows.start)
        else:
            self._taken = visited.take(pa.array(rows))

    def begin_batch(self, size: int) -> list[pa.Table]:
        """Return a list for the parts of a batch."""
        return []

    def fill(self, batch: list[pa.Table], at: int, begin: int, end: int) -> None:
        """Add a slice."""
        assert self._taken is not None
        batch.append(self._taken.slice(begin, end - begin))

    def finish(self, batch: list[pa.Table], size: int) -> pa.RecordBatch:
        """Return the parts as one batch."""
        whole = pa.concat_tables(batch).combine_chunks()
        return whole.to_batches()[0]

    def first_row(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the first row; Arrow's data never changes."""
        return batch.slice(0, 1)


def _padded(lists: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return lists as rows of a matrix as wide as the longest, with zeros after the end of the others."""
    width = max((len(values) for values in lists), default=0)
    matrix = np.zeros((len(lists), width), dtype)
    for row, values in enumerate(lists):
        matrix[row, : len(values)] = values
    return matrix
