"""Bring the newest rows of a group into its file for look-ups: what changed since the last time, or all of them."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.features.definition import Definition
from cargobike.features.online.latest import changed_between, keys_in, latest_rows, next_due
from cargobike.features.online.packing import NO_TIME, Packing, format_of
from cargobike.features.online.store import State, file_of, pack_keys, read_state, write_state, writing
from cargobike.features.queries.planning import rows_of
from cargobike.features.reading import ReadGroup

_ALL = "INSERT INTO rows VALUES (?, ?, ?)"
_REPLACE = "INSERT OR REPLACE INTO rows VALUES (?, ?, ?)"
_IF_NEWER = (
    "INSERT INTO rows VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET time = excluded.time, value = excluded.value "
    "WHERE excluded.time >= time"
)


class Materialized(NamedTuple):
    """What a materialization did: the commit that look-ups see now, rows written, keys removed, and how it was done."""

    commit: int
    rows: int
    removed: int
    whole: bool


def materialize(group: ReadGroup, root: Path) -> Materialized:
    """Make look-ups see the newest rows of a group; does only what changed since the last time.

    Look-ups work meanwhile, and see all of it at the end. Killed at any moment, it leaves what was there before.

    Args:
        group: The group.
        root: The local folder of its project.

    Raises:
        InvalidInputError: If nothing was inserted into the group yet.
        StoreError: If another process is doing the same for more than a minute.
    """
    definition, commit = group.definition, group.commit
    rows = rows_of(group, commit)
    kinds = tuple(str(rows.schema.field(name).type) for name in definition.key)
    format = format_of(rows.schema, list(definition.features))
    now_us = time.time_ns() // 1000
    with writing(file_of(root, definition), kinds) as connection:
        state = read_state(connection)
        fits = state is not None and state.format == format and state.key == kinds
        if state is not None and fits and state.commit >= commit and not _is_due(state, now_us):
            return Materialized(state.commit, 0, 0, whole=False)
        number = 1 if state is None else state.number if fits else state.number % 65535 + 1
        packing = format.packing(number)
        old = _rows_at(group, state.commit) if state is not None and fits and not _is_due(state, now_us) else None
        done = None if old is None else _write_changes(connection, definition, packing, (old, rows), now_us)
        if done is None:
            connection.execute("DELETE FROM rows")
            table = latest_rows(rows, definition, now_us)
            done = (_write(connection, definition, packing, table, _ALL), 0)
        due = next_due(rows, definition, now_us)
        write_state(connection, State(commit, number, format, kinds, now_us, due))
    return Materialized(commit, *done, whole=old is None)


def _is_due(state: State, now_us: int) -> bool:
    return state.due_us is not None and state.due_us <= now_us


def _rows_at(group: ReadGroup, commit: int) -> ds.Dataset | None:
    """Return the rows of an earlier commit; `None` if they can no longer be read."""
    try:
        return group.dataset(commit)
    except (NotFoundError, StoreError):
        return None


def _write_changes(
    connection: sqlite3.Connection,
    definition: Definition,
    packing: Packing,
    states: tuple[ds.Dataset, ds.Dataset],
    now_us: int,
) -> tuple[int, int] | None:
    """Write what differs between two commits; returns `None` if that cannot be told."""
    old, new = states
    changed = changed_between(old, new)
    if changed is None:
        return None
    if changed.went is None:
        table = latest_rows(changed.came, definition, now_us)
        return _write(connection, definition, packing, table, _IF_NEWER), 0
    try:
        went = ds.dataset(keys_in(changed.went, definition))
    except OSError:
        return None  # the files of the earlier commit are gone
    came = ds.dataset(keys_in(changed.came, definition))
    table = latest_rows(new, definition, now_us, of=[came, went])
    written = _write(connection, definition, packing, table, _REPLACE)
    there = set(pack_keys(table, definition.key))
    gone = [(key,) for key in pack_keys(went.to_table(), definition.key) if key not in there]
    connection.executemany("DELETE FROM rows WHERE key = ?", gone)
    return written, len(gone)


def _write(
    connection: sqlite3.Connection, definition: Definition, packing: Packing, table: pa.Table, statement: str
) -> int:
    keys = pack_keys(table, definition.key)
    times = (
        table[definition.event_time].cast(pa.int64()).to_pylist() if definition.event_time else [NO_TIME] * len(table)
    )
    connection.executemany(statement, zip(keys, times, packing.pack(table, definition.event_time), strict=True))
    return len(table)
