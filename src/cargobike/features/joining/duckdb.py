"""Joins in time with DuckDB, over Arrow.

Each group is joined on its own, with only keys, times and row numbers of the spine: the other columns of the spine
never leave Arrow, and what one group needs in memory is free before the next one comes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from cargobike.core.errors import StoreError
from cargobike.features.definition import WRITTEN_AT
from cargobike.features.joining.side import Side
from cargobike.features.joining.spine import Spine, as_keys

_PATTERN = re.compile(r"[*?\[\]{}]")
_SETTINGS = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
"""Nothing is downloaded in the middle of a query."""


class Lateness(NamedTuple):
    """How many rows of a spine got a value from a group, and how many of those values were written later."""

    matched: int
    late: int


def join(spine: Spine, sides: Sequence[Side]) -> pa.Table:
    """Return the rows of a spine in their order, each with the values of all sides; see `Side` for which.

    Raises:
        InvalidInputError: If keys of the spine do not fit.
        StoreError: If a group without event times has several rows for a key.
    """
    table = spine.table
    with duckdb.connect(":memory:", config=_SETTINGS) as connection:
        for side in sides:
            values = _values(connection, spine, side)
            for name in side.columns:
                table = table.append_column(pa.field(name, values[name].type), values[name])
    return table


def count_late(spine: Spine, side: Side) -> Lateness:
    """Count the rows of a spine that get a value of a side, and those whose value was written after their time."""
    if spine.times is None or WRITTEN_AT not in side.rows.schema.names:
        return Lateness(0, 0)
    text = (
        "SELECT count(w), count(w) FILTER (WHERE w > t) FROM "
        f"(SELECT s.t AS t, {_counted(f'g.{_quoted(WRITTEN_AT)}', side)} AS w FROM {_joined(side, [WRITTEN_AT], True)})"
    )
    with duckdb.connect(":memory:", config=_SETTINGS) as connection:
        _register(connection, spine, side)
        matched, late = connection.sql(text).fetchall()[0]
    return Lateness(int(matched), int(late))


def _values(connection: Any, spine: Spine, side: Side) -> pa.Table:
    """Return the values of one side for each row of the spine."""
    wanted = list(dict.fromkeys(side.columns.values()))
    chosen = [f"{_counted(f'g.{_quoted(name)}', side)} AS c{number}" for number, name in enumerate(wanted)]
    text = f"SELECT {', '.join(['s.r', *chosen])} FROM {_joined(side, wanted, spine.times is not None)}"
    _register(connection, spine, side)
    found = connection.sql(text).to_arrow_table()
    if len(found) != len(spine):
        raise StoreError(
            f"The group {side.name} has several rows for one key, which would repeat rows. Insert them again: an "
            "insert keeps the last row of each key."
        )
    ordered = found.combine_chunks().take(_inverse(found["r"])) if len(found) else found
    by_column = {name: _as_stored(ordered[f"c{number}"], side.field(name).type) for number, name in enumerate(wanted)}
    return pa.table({name: by_column[column] for name, column in side.columns.items()})


def _joined(side: Side, columns: Sequence[str], timed: bool) -> str:
    """Return the joined rows as SQL: `s`, the spine, and beside it `g`, the rows of the group that count."""
    keys = [_quoted(name) for name in side.key]
    same = " AND ".join(f"s.k{number} = g.{key}" for number, key in enumerate(keys))
    named = dict.fromkeys([*side.key, *columns, *([side.known_at] if side.known_at else [])])
    chosen = ", ".join(_quoted(name) for name in named)
    known = _quoted(side.known_at)
    if not side.event_time or not timed:
        only_known = f" AND g.{known} <= s.t" if side.known_at and timed else ""
        return f"s LEFT JOIN (SELECT {chosen} FROM rows) g ON {same}{only_known}"
    time = _quoted(side.event_time)
    if not side.known_at:
        rows = f"SELECT {chosen}, {time} AS __t FROM rows"
        return f"s ASOF LEFT JOIN ({rows}) g ON {same} AND s.t >= g.__t"
    # A row counts from the later of both times on. In the order of these moments, a row with an earlier event time
    # than one before it can never be the answer: without such rows, the last moment has the latest event time.
    since = f"greatest({time}, {known})"
    window = f"PARTITION BY {', '.join(keys)} ORDER BY {since}, {time}"
    before = f"max({time}) OVER ({window} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    rows = (
        f"SELECT {chosen}, {time} AS __t, {since} AS __since FROM rows WHERE {known} IS NOT NULL "
        f"QUALIFY coalesce({time} >= {before}, true) AND {since} IS DISTINCT FROM lead({since}) OVER ({window})"
    )
    return f"s ASOF LEFT JOIN ({rows}) g ON {same} AND s.t >= g.__since"


def _in_reach(spine: Spine, side: Side) -> ds.Dataset:
    """Return the rows of a group without the files in which all rows are too late, or too old, for any row.

    Whole files only: to leave out rows one by one would cost more than to join them.
    """
    if spine.times is None or not side.event_time or not isinstance(side.rows, ds.FileSystemDataset):
        return side.rows
    reach = pc.min_max(spine.times)
    if not reach["max"].is_valid:
        return side.rows
    within = ds.field(side.event_time) <= reach["max"]
    if side.ttl_us is not None:
        within &= ds.field(side.event_time) >= pc.subtract(reach["min"], pa.scalar(side.ttl_us, pa.duration("us")))
    fragments = list(side.rows.get_fragments(filter=within))
    if len(fragments) == len(side.rows.files):
        return side.rows
    if not fragments:
        return ds.dataset(side.rows.schema.empty_table())
    return ds.FileSystemDataset(fragments, side.rows.schema, side.rows.format, side.rows.filesystem)


def _counted(value: str, side: Side) -> str:
    """Return a value as SQL, null where it is too old to count."""
    if side.ttl_us is None or not side.event_time:
        return value
    return f"CASE WHEN epoch_us(s.t) - epoch_us(g.__t) <= {side.ttl_us} THEN {value} END"


def _register(connection: Any, spine: Spine, side: Side) -> None:
    """Show keys and times of a spine to a database as `s`, and the rows of a group as `rows`."""
    columns: dict[str, Any] = {"r": pa.array(np.arange(len(spine), dtype=np.int64))}
    for number, (key, name) in enumerate(zip(side.key, side.on, strict=True)):
        columns[f"k{number}"] = as_keys(spine.table[name], name, side.field(key).type, side.name)
    if spine.times is not None:
        columns["t"] = spine.times
    connection.register("s", pa.table(columns))
    rows = _in_reach(spine, side)
    named = [*side.key, *side.columns.values(), *filter(None, [side.event_time, side.known_at])]
    if not _view_of_files(connection, rows, named):
        connection.register("in_arrow", rows)
        connection.execute("CREATE OR REPLACE TEMP VIEW rows AS SELECT * FROM in_arrow")


def _view_of_files(connection: Any, rows: ds.Dataset, names: Sequence[str]) -> bool:
    """Show local files to a database as `rows`, which it reads quicker than through Arrow; returns whether it can."""
    if not isinstance(rows, ds.FileSystemDataset) or not isinstance(rows.filesystem, LocalFileSystem):
        return False
    if any(_PATTERN.search(path) for path in rows.files):
        return False  # DuckDB would look for other files
    files = ", ".join("'" + path.replace("'", "''") + "'" for path in rows.files)
    read = f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"
    try:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW rows AS SELECT * FROM {read}")
        there = {name for name, *_ in connection.sql("DESCRIBE rows").fetchall()}
    except duckdb.Error:
        return False
    return there >= set(names)  # a column that no file has yet is null in Arrow


def _inverse(numbers: pa.ChunkedArray) -> pa.Array:
    """Return where each row of the spine is in the result, since a join keeps no order."""
    places = np.empty(len(numbers), dtype=np.int64)
    places[numbers.to_numpy()] = np.arange(len(numbers), dtype=np.int64)
    return pa.array(places)


def _as_stored(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == kind else pc.cast(values, kind)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
