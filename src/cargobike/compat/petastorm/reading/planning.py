"""Which rows of which row groups a reader reads: predicates, filters, selectors and shards, before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.compat.petastorm.errors import NoDataAvailableError
from cargobike.compat.petastorm.predicates import PredicateBase
from cargobike.compat.petastorm.unischema import Unischema
from cargobike.core.errors import InvalidInputError
from cargobike.data.loading.order import Piece
from cargobike.data.loading.shares import Sharing
from cargobike.data.sources.partitions import PartitionedSource


@dataclass(frozen=True)
class Shard:
    """Which of how many parts of the data is read."""

    number: int
    count: int


def shard_of(cur_shard: Any, shard_count: Any, groups: int) -> Shard | None:
    """Return which part to read, if one was asked for.

    Raises:
        InvalidInputError: If only one of both was given, or they make no sense.
        NoDataAvailableError: If there are fewer row groups than parts.
    """
    if cur_shard is None and shard_count is None:
        return None
    if type(cur_shard) is not int or type(shard_count) is not int or not 0 <= cur_shard < shard_count:
        raise InvalidInputError(
            f"cur_shard={cur_shard!r}, shard_count={shard_count!r} were given; both must be whole numbers, and "
            "cur_shard from 0 to shard_count - 1."
        )
    if groups < shard_count:
        raise NoDataAvailableError(
            f"Number of row-groups in the dataset ({groups}) must be greater or equal to the number of requested "
            f"shards ({shard_count}). Write smaller row groups, or use cargobike.data.Loader, which shares rows."
        )
    return Shard(cur_shard, shard_count)


def groups_kept(
    source: PartitionedSource, schema: Unischema, predicate: PredicateBase | None, filters: Any
) -> tuple[list[int], bool]:
    """Return the groups that the names of their folders do not rule out, and whether that decides about the predicate.

    Raises:
        InvalidInputError: If the predicate is none.
    """
    kept = list(range(len(source.groups)))
    decided = False
    if predicate is not None:
        if not isinstance(predicate, PredicateBase):
            raise InvalidInputError(f"predicate={predicate!r:.80} is expected to be derived from PredicateBase.")
        names = list(predicate.get_fields())
        decided = bool(names) and set(names) <= set(source.partitions)
        if decided:
            kept = [group for group in kept if predicate.do_include(_partition_values(source, schema, group, names))]
    if filters:
        expression = pq.filters_to_expression(filters)
        if filtered_columns(filters) <= set(source.partitions):
            values = pa.table({name: [source.values[group][name] for group in kept] for name in source.partitions})
            numbered = values.append_column("__group__", pa.array(kept, pa.int64()))
            kept = numbered.filter(expression)["__group__"].to_pylist()
    return kept, decided


def _partition_values(source: PartitionedSource, schema: Unischema, group: int, names: Sequence[str]) -> dict[str, Any]:
    values = {name: source.values[group][name] for name in names}
    return {
        name: value if value is None or name not in schema.fields else schema.fields[name].numpy_dtype(value)
        for name, value in values.items()
    }


def filtered_columns(filters: Any) -> set[str]:
    """Return the columns that filters, as Arrow has them, look at."""
    if not filters:
        return set()
    clauses = [filters] if isinstance(filters[0], tuple) else filters
    return {term[0] for clause in clauses for term in clause}


def rows_passing(table: pa.Table, filters: Any) -> Any:
    """Tell for each row of a table whether it passes filters."""
    numbered = table.append_column("__row__", pa.array(np.arange(table.num_rows)))
    passing = np.zeros(table.num_rows, bool)
    passing[numbered.filter(pq.filters_to_expression(filters))["__row__"].to_numpy()] = True
    return passing


def whole_groups(source: PartitionedSource, groups: Sequence[int], shard: Shard | None) -> list[Piece]:
    """Return the row groups of a shard: every `count`-th of all, so that it depends on no seed."""
    mine = [group for group in groups if shard is None or group % shard.count == shard.number]
    return [Piece(group, 0, source.groups[group].rows) for group in mine]


def even_share(source: PartitionedSource, groups: Sequence[int], shard: Shard) -> list[Piece]:
    """Return a stretch of all rows: shares differ by at most one row."""
    rows = sum(source.groups[group].rows for group in groups)
    begin, end = Sharing(shard.count, 1).share(rows, shard.number)
    pieces, at = [], 0
    for group in groups:
        size = source.groups[group].rows
        first, last = max(begin - at, 0), min(end - at, size)
        if first < last:
            pieces.append(Piece(group, first, last))
        at += size
    return pieces


def in_parts(pieces: Sequence[Piece], parts: int, overlap: int = 0) -> list[Piece]:
    """Cut each piece into some parts, which are read one by one; each may reach some rows into the next one.

    Raises:
        InvalidInputError: If the number is none.
    """
    if type(parts) is not int or parts < 1:
        raise InvalidInputError(f"shuffle_row_drop_partitions={parts!r}: give a whole number, at least 1.")
    if parts == 1:
        return list(pieces)
    cut = []
    for piece in pieces:
        rows = piece.stop - piece.start
        count = min(parts, rows)
        ends = [piece.start + rows * number // count for number in range(count + 1)]
        for number in range(count):
            stop = ends[number + 1] if number == count - 1 else min(ends[number + 1] + overlap, piece.stop)
            cut.append(Piece(piece.group, ends[number], stop))
    return cut
