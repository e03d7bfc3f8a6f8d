"""Whole groups of a source: order, pieces, rows that are wanted, errors, threads that end."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from cargobike.data.loading.groups import GroupReader, Picking
from cargobike.data.loading.order import Piece
from cargobike.data.sources.memory import MemorySource
from cargobike.data.sources.source import Source


def source_of(rows: int) -> Source:
    return MemorySource(pa.table({"id": np.arange(rows), "half": np.arange(rows) / 2}))


def pieces_of(*sizes: int) -> list[Piece]:
    """Return pieces of the one group that a small table in memory is."""
    ends = np.cumsum([0, *sizes])
    return [Piece(0, int(begin), int(end)) for begin, end in itertools.pairwise(ends)]


def reader_of(source: Source, *, shuffle: bool = False, picking: Picking | None = None) -> GroupReader[list[int]]:
    return GroupReader(
        source,
        ["id"],
        lambda table: table["id"].to_pylist(),
        pieces=pieces_of(3, 4, 5, 2),
        shuffle_groups=shuffle,
        shuffle_rows=shuffle,
        seed=7,
        picking=picking,
    )


def test_pieces_come_in_order_or_shuffled_by_epoch() -> None:
    source = source_of(14)
    plain = reader_of(source)
    assert list(plain.read(0)) == list(plain.read(5)) == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11], [12, 13]]
    mixed = reader_of(source, shuffle=True)
    first, again, second = list(mixed.read(0)), list(mixed.read(0)), list(mixed.read(1))
    assert first == again != second
    assert sorted(map(sorted, first)) == sorted(map(sorted, second)) == list(plain.read(0))


def test_only_wanted_rows_come_and_their_columns_are_read_once() -> None:
    read_columns: list[tuple[str, ...]] = []

    class Counting(MemorySource):
        def read(self, group: int, columns: object = None) -> pa.Table:
            read_columns.append(tuple(columns or ()))  # type: ignore[arg-type]
            return super().read(group, columns)  # type: ignore[arg-type]

    def few(table: pa.Table) -> NDArray[np.bool_]:
        wanted: NDArray[np.bool_] = table["half"].to_numpy() > 5
        return wanted

    source = Counting(pa.table({"id": np.arange(14), "half": np.arange(14) / 2}))
    reader = reader_of(source, picking=Picking(["half"], few))
    assert list(reader.read(0)) == [[], [], [11], [12, 13]]
    assert sorted(read_columns) == [("half",)] * 4 + [("id",)] * 2


def test_what_a_function_raises_is_raised_and_threads_end() -> None:
    def fail(table: pa.Table) -> int:
        raise KeyError("beans")

    reader = GroupReader(
        source_of(4), ["id"], fail, pieces=pieces_of(2, 2), shuffle_groups=False, shuffle_rows=False, seed=0
    )
    with pytest.raises(KeyError, match="beans"):
        list(reader.read(0))
    assert reader.join(10)
    for thread in threading.enumerate():
        if thread.name.startswith("cargobike-loader"):
            thread.join(10)
            assert not thread.is_alive()


def test_nothing_is_read_of_no_pieces() -> None:
    reader = GroupReader(source_of(4), ["id"], len, pieces=[], shuffle_groups=True, shuffle_rows=False, seed=0)
    assert list(reader.read(0)) == []
    assert reader.join()
