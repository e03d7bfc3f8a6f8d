"""Bring the newest rows of a group into its store for look-ups: what changed since the last time, or all of them."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.features.definition import Definition
from cargobike.features.online.latest import changed_between, keys_in, latest_rows, next_due
from cargobike.features.online.packing import NO_TIME, Packing, format_of
from cargobike.features.online.stores.keys import pack_keys
from cargobike.features.online.stores.store import OnlineStore, Overtaken, State, Writer
from cargobike.features.queries.planning import rows_of
from cargobike.features.reading import ReadGroup

_ATTEMPTS: Final = 50
"""How often another process may come first; each time there is less to do."""


class Materialized(NamedTuple):
    """What a materialization did: the commit that look-ups see now, rows written, keys removed, and how it was done."""

    commit: int
    rows: int
    removed: int
    whole: bool


def materialize(group: ReadGroup, store: OnlineStore) -> Materialized:
    """Make look-ups see the newest rows of a group; does only what changed since the last time.

    Look-ups work meanwhile, and see all of it at the end. Killed at any moment, it leaves what was there before.

    Args:
        group: The group.
        store: Where they are looked up.

    Raises:
        InvalidInputError: If nothing was inserted into the group yet.
        StoreError: If the store cannot be written, or other processes are doing the same all the time.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _materialize(group, store)
        except Overtaken:
            continue  # what the other process has written may be all that there is to do
    raise StoreError(f"Other processes keep materializing the group {group.name}; nothing was changed by this one.")


def _materialize(group: ReadGroup, store: OnlineStore) -> Materialized:
    definition, commit = group.definition, group.commit
    rows = rows_of(group, commit)
    kinds = tuple(str(rows.schema.field(name).type) for name in definition.key)
    format = format_of(rows.schema, list(definition.features))
    now_us = time.time_ns() // 1000
    with store.writing(kinds) as writer:
        state = writer.state()
        fits = state is not None and (state.format, state.key, state.table) == (format, kinds, group.table_id)
        if state is not None and fits and state.commit >= commit and not _is_due(state, now_us):
            return Materialized(state.commit, 0, 0, whole=False)
        number = 1 if state is None else state.number if fits else state.number % 65535 + 1
        packing = format.packing(number)
        old = _rows_at(group, state.commit) if state is not None and fits and not _is_due(state, now_us) else None
        done = None if old is None else _write_changes(writer, definition, packing, (old, rows), now_us)
        if done is None:
            writer.clear()
            table = latest_rows(rows, definition, now_us)
            done = (_write(writer, definition, packing, table), 0)
        due = next_due(rows, definition, now_us)
        writer.finish(State(commit, number, format, kinds, now_us, due, group.table_id))
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
    writer: Writer,
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
        return _write(writer, definition, packing, table, if_newer=True), 0
    try:
        went = ds.dataset(keys_in(changed.went, definition))
    except OSError:
        return None  # the files of the earlier commit are gone
    came = ds.dataset(keys_in(changed.came, definition))
    table = latest_rows(new, definition, now_us, of=[came, went])
    written = _write(writer, definition, packing, table)
    there = set(pack_keys(table, definition.key))
    gone = [key for key in pack_keys(went.to_table(), definition.key) if key not in there]
    writer.remove(gone)
    return written, len(gone)


def _write(writer: Writer, definition: Definition, packing: Packing, table: pa.Table, *, if_newer: bool = False) -> int:
    keys = pack_keys(table, definition.key)
    times = (
        table[definition.event_time].cast(pa.int64()).to_pylist() if definition.event_time else [NO_TIME] * len(table)
    )
    writer.put(keys, times, packing.pack(table, definition.event_time), if_newer=if_newer)
    return len(table)
