"""Where labels lie: numbered Parquet files of a monitor, created only if absent, by any process on any host."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.core.errors import InvalidInputError, StoreError, nearest
from cargobike.core.layout import ProjectFolder
from cargobike.monitoring.kind import MONITORS
from cargobike.store.assets.numbering import create_next, newest_number
from cargobike.store.files.in_memory import in_memory
from cargobike.store.files.storages import storage_of

ID: Final = "request_id"
ROW: Final = "row"
_FOLDER: Final = "labels"


def add_labels(project: ProjectFolder, name: str, labels: pa.Table, label: str) -> int:
    """Keep labels for a monitor; return their number.

    Args:
        project: The project of the monitor.
        name: The monitor.
        labels: Ids of requests, what is true, and `row` where requests have several rows, counted from 0.
        label: The column with what is true.

    Raises:
        InvalidInputError: If they lack the ids of requests, or the column with what is true.
    """
    mistakes = [
        f"there is no column {column!r}.{nearest(column, labels.column_names)}"
        for column in (ID, label)
        if column not in labels.column_names
    ]
    if not mistakes and not labels.num_rows:
        mistakes.append("there are no rows")
    if mistakes:
        raise InvalidInputError(f"These are no labels for {name}.", mistakes)
    columns = {ID: labels[ID].cast(pa.string()), label: labels[label]}
    if ROW in labels.column_names:
        columns[ROW] = labels[ROW].cast(pa.int64())
    chosen = pa.table(columns)
    sink = pa.BufferOutputStream()
    pq.write_table(chosen, sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    storage = storage_of(project)
    first = newest_number(storage, lambda number: _path(name, number)) + 1
    return create_next(storage, lambda number: _path(name, number), lambda _: data, first)


def newest_labels(project: ProjectFolder, name: str, at_least: int = 0) -> int:
    """Return the number of the newest labels; 0 if there are none."""
    return newest_number(storage_of(project), lambda number: _path(name, number), at_least)


def read_labels(project: ProjectFolder, name: str, number: int) -> pa.Table:
    """Return the labels of a number.

    Raises:
        StoreError: If they are not there, or damaged.
    """
    storage = storage_of(project)
    data = storage.read(_path(name, number))
    if data is None:
        raise StoreError(f"{storage}/{_path(name, number)} is not there any more.")
    try:
        return pq.read_table(in_memory(data))
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{storage}/{_path(name, number)} is damaged: {error}") from error


def _path(name: str, number: int) -> str:
    return MONITORS.place(name, _FOLDER, f"{number}.parquet")
