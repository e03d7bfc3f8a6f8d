"""Rows that broke an expectation and were put aside: one file for each insert, named by its commit."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.features.delta.log import Log
from cargobike.features.groups.commits import commit_of
from cargobike.features.groups.files import new_name
from cargobike.store.files.in_memory import in_memory

REASON: Final = "_reason"


def bad_ones(rows: pa.Table, masks: dict[str, Any]) -> pa.Table:
    """Return the rows that are bad, with the reason of each.

    Args:
        rows: The rows that were to be inserted.
        masks: Which rows are bad, by reason.
    """
    bad = np.zeros(rows.num_rows, dtype=bool)
    reasons = np.full(rows.num_rows, "", dtype=object)
    for reason, mask in masks.items():
        marked = np.asarray(mask, dtype=bool)
        bad |= marked
        reasons[marked] = [f"{before}; {reason}" if before else reason for before in reasons[marked]]
    return rows.filter(pa.array(bad)).append_column(REASON, pa.array(reasons[bad], pa.string()))


def put_aside(log: Log, aside: pa.Table) -> tuple[str, int]:
    """Write bad rows into a file of their own.

    Returns:
        The name of the file, and how many rows it holds.
    """
    name = new_name()
    _write(log, name, aside)
    return name, aside.num_rows


def quarantined_rows(log: Log) -> pa.Table:
    """Return the rows that were put aside, the oldest first, with the reason of each."""
    tables = [table for _, table in _files(log)]
    if not tables:
        return pa.table({REASON: pa.array([], pa.string())})
    return pa.concat_tables(tables, promote_options="default")


def forget(log: Log, is_forgotten: Any) -> None:
    """Delete rows that were put aside: those of which `is_forgotten` makes a mask from a table."""
    for name, table in _files(log):
        mask = is_forgotten(table)
        if mask.any():
            _write(log, name, table.filter(pa.array(~mask)))


def _files(log: Log) -> list[tuple[str, pa.Table]]:
    names = [commit_of(version, actions).quarantine for version, actions in log.commits(newest_first=False)]
    found = []
    for name in names:
        data = log.storage.read(_path(log, name)) if name and "/" not in name else None
        if data is not None:
            found.append((name, pq.read_table(in_memory(data))))
    return found


def _write(log: Log, name: str, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    log.storage.write(_path(log, name), sink.getvalue().to_pybytes())


def quarantine_folder(log: Log) -> str:
    """Return the folder of the rows of a group that were put aside."""
    group, _, version = log.folder.rpartition("/")
    return f"{group}/quarantine/{version}"


def _path(log: Log, name: str) -> str:
    return f"{quarantine_folder(log)}/{name}"
