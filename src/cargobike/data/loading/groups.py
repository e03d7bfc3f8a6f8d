"""Whole groups of a source, one after the other, for those who do not want batches of equal size.

The same threads, order and errors as a loader has: each group is read and made into something by a thread ahead of
need, and comes in an order that depends on seed and epoch alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cargobike.data.loading.ahead import ReadAhead
from cargobike.data.loading.blocks import Blocks, Rows
from cargobike.data.loading.decoding import Problem
from cargobike.data.loading.order import Order, Piece
from cargobike.data.loading.stats import Stats
from cargobike.data.loading.visits import Visit
from cargobike.data.sources.source import Group, Source, SourceSpec

T = TypeVar("T")


class Picking(NamedTuple):
    """Which rows are wanted: the columns to look at, and a function from a table of them to what is true of each row.

    Where no row of a group is wanted, the other columns are not read.
    """

    columns: Sequence[str]
    wanted: Callable[[pa.Table], NDArray[np.bool_]]


class GroupReader(Generic[T]):
    """Pieces of a source as what a function makes of them.

    Args:
        source: What is read.
        columns: Its columns.
        make: Called by threads with the table of each piece; an error that it raises is raised where it is taken.
        pieces: Rows of which groups; none twice.
        shuffle_groups: Whether pieces come in a new random order in each epoch.
        shuffle_rows: Whether rows within a piece do.
        seed: What these orders are drawn from.
        picking: Which rows are wanted; all by default. A piece of which none are comes as an empty table.
        threads: How many read ahead.
        timeout_s: After how long without an answer of the storage to give up.

    Attributes:
        stats: What was read and waited for.
    """

    def __init__(
        self,
        source: Source,
        columns: Sequence[str],
        make: Callable[[pa.Table], T],
        *,
        pieces: Sequence[Piece],
        shuffle_groups: bool,
        shuffle_rows: bool,
        seed: int,
        picking: Picking | None = None,
        threads: int = 2,
        timeout_s: float = 600.0,
    ) -> None:
        self.stats = Stats()
        self._source = source
        self._columns = list(columns)
        self._make = make
        self._pieces = list(pieces)
        self._shuffle_groups, self._shuffle_rows = shuffle_groups, shuffle_rows
        self._seed = seed
        self._picking = picking
        self._threads = threads
        self._timeout_s = timeout_s
        self._ahead: ReadAhead | None = None

    def read(self, epoch: int) -> Generator[T, None, None]:
        """Yield all pieces of an epoch; the threads end with it."""
        if not self._pieces:
            return
        sizes = [piece.stop - piece.start for piece in self._pieces]
        order = Order(sizes, shuffle=self._shuffle_groups, seed=self._seed, epoch=epoch, mix=1)
        rows = Order(sizes, shuffle=self._shuffle_rows, seed=self._seed, epoch=epoch, mix=1)
        places = min(self._threads + 2, len(sizes))
        blocks = _Whole(self._make, places)
        self._ahead = ReadAhead(
            _Pieces(self._source, self._pieces, self._picking, rows),
            self._columns,
            _visits(order, sizes),
            blocks,
            places=places,
            threads=min(self._threads, len(sizes)),
            timeout_s=self._timeout_s,
            skip=False,
            stats=self.stats,
        )
        try:
            for _ in sizes:
                _, bases, _ = self._ahead.visit()
                (place,) = bases.values()
                made = blocks.take(place)
                self._ahead.leave()
                yield made
        finally:
            self._ahead.close()

    def join(self, timeout_s: float = 60.0) -> bool:
        """Wait until the threads have finished, after reading has ended; returns whether they have."""
        return self._ahead is None or self._ahead.join(timeout_s)


def _visits(order: Order, sizes: Sequence[int]) -> Iterator[Visit]:
    for number in order.sequence:
        yield Visit(number, 0, sizes[number], (Piece(number, 0, sizes[number]),))


class _Pieces(Source):
    """Pieces as the groups of a source, without the rows that are not wanted, in the order in which they come."""

    def __init__(self, source: Source, pieces: Sequence[Piece], picking: Picking | None, rows: Order) -> None:
        self.name, self.schema, self.fingerprint = source.name, source.schema, source.fingerprint
        self.groups = [Group(*source.groups[piece.group]) for piece in pieces]
        self._source = source
        self._pieces = pieces
        self._picking = picking
        self._rows = rows

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Read one piece."""
        piece = self._pieces[group]
        names = self.schema.names if columns is None else list(columns)
        wanted: NDArray[np.int64] | None = None
        first: pa.Table | None = None
        if self._picking is not None:
            first = self._part(piece, list(self._picking.columns))
            wanted = np.flatnonzero(self._picking.wanted(first))
            if not len(wanted):
                return pa.schema([self.schema.field(name) for name in names]).empty_table()
        rest = names if first is None else [name for name in names if name not in first.schema.names]
        table = self._part(piece, rest) if rest or first is None else None
        if table is None:
            assert first is not None
            table = first.select(names)
        elif first is not None:
            arrays = [table[name] if name in rest else first[name] for name in names]
            table = pa.table(arrays, names=names)
        if self._rows.is_shuffled:
            places = np.arange(table.num_rows) if wanted is None else wanted
            return table.take(pa.array(self._rows.mixed(group, places)))
        return table if wanted is None else table.take(pa.array(wanted))

    def _part(self, piece: Piece, names: Sequence[str]) -> pa.Table:
        table = self._source.read(piece.group, names)
        return table.slice(piece.start, piece.stop - piece.start)

    def spec(self) -> SourceSpec:
        """Return what opens the source that these are pieces of."""
        return self._source.spec()


class _Failed(NamedTuple):
    """What the function raised."""

    error: Exception


class _Whole(Blocks):
    """Places for what was made of whole pieces."""

    def __init__(self, make: Callable[[pa.Table], Any], places: int) -> None:
        self.takes_parts = False
        self.nbytes = 0
        self._make = make
        self._made: list[Any] = [None] * places

    def put(self, place: int, table: pa.Table) -> list[Problem]:
        """Make something of a table."""
        try:
            self._made[place] = self._make(table)
        except Exception as error:  # noqa: BLE001 - a user's function; raised again where it is taken
            self._made[place] = _Failed(error)
        return []

    def take(self, place: int) -> Any:
        """Return what was made, or raise what was raised."""
        made, self._made[place] = self._made[place], None
        if isinstance(made, _Failed):
            raise made.error
        return made

    def bases(self, places: Sequence[int]) -> list[int]:
        """Return the places themselves."""
        return list(places)

    def enter(self, rows: Rows) -> None:
        """Take nothing: there are no batches."""

    def begin_batch(self, size: int) -> Any:
        """Return nothing: there are no batches."""

    def fill(self, batch: Any, at: int, begin: int, end: int) -> None:
        """Copy nothing: there are no batches."""

    def finish(self, batch: Any, size: int) -> Any:
        """Return nothing: there are no batches."""

    def first_row(self, batch: Any) -> Any:
        """Return nothing: there are no batches."""
