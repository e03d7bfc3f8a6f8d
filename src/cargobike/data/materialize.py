"""Data that is given to an experiment, written once as Parquet into the project, for all readers."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.feeding import Feed
from cargobike.core.version import __version__
from cargobike.data import parts
from cargobike.data.facts import TableWritten
from cargobike.data.keeping import user_name
from cargobike.data.kind import DATA
from cargobike.data.spark_types import for_arrow
from cargobike.engines.spark.pythons import python_for_tasks
from cargobike.store.journal.journal import JournalWriter


def materialize(data: object, project: ProjectFolder) -> Feed:
    """Write data as Parquet files into the project.

    Args:
        data: A Spark DataFrame, a pandas DataFrame or a pyarrow Table.
        project: The project; the files go to a new folder under its `data/`.

    Raises:
        InvalidInputError: If the data is of another type, or has no rows.
    """
    name = uuid.uuid4().hex[:12]
    folder = project.root / DATA.folder / name
    building = folder.with_name(f".{name}.new")
    building.mkdir(parents=True)
    try:
        if hasattr(data, "mapInArrow"):
            _write_spark(data, building)
        elif isinstance(data, pa.Table):
            _write(iter(data.to_batches()), data.schema, building)
        elif type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
            table = pa.Table.from_pandas(data, preserve_index=False)
            _write(iter(table.to_batches()), table.schema, building)
        else:
            raise InvalidInputError(
                f"data={type(data).__name__} was given; give a Spark DataFrame, a pandas DataFrame or a pyarrow Table."
            )
        names = sorted(path.name for path in building.glob("*.parquet"))
        counted = [(file, pq.read_metadata(building / file).num_rows) for file in names]
        filled = [(file, rows) for file, rows in counted if rows]
        if not filled:
            raise InvalidInputError("The data has no rows.")
        _record(building, name, dict(filled), type(data).__module__.partition(".")[0])
        os.rename(building, folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return Feed(f"data/{folder.name}", [file for file, _ in filled], [rows for _, rows in filled])


def _record(folder: Path, table_id: str, files: dict[str, int], source: str) -> None:
    """Begin the journal of a table, before its folder gets its name: a table that can be seen has one."""
    schema = pq.read_schema(folder / next(iter(files)))
    written = TableWritten(
        at=time.time(),
        id=table_id,
        cargobike=__version__,
        source=source,
        columns={field.name: str(field.type) for field in schema},
        files=files,
        size_bytes=sum((folder / file).stat().st_size for file in files),
        user=user_name(),
        host=socket.gethostname(),
    )
    with JournalWriter(folder / DATA.journal) as writer:
        writer.append([written])


def _write_spark(data: Any, folder: Path) -> None:
    """Have executors write if they see the folder, else fetch the data here piece by piece; both keep the order."""
    from pyspark import cloudpickle  # noqa: PLC0415 - with a Spark DataFrame it is loaded already

    cloudpickle.register_pickle_by_value(parts)
    frame = for_arrow(data)
    context = data.sparkSession.sparkContext
    if _is_seen_by_executors(context, folder):
        with python_for_tasks(context):
            names = frame.mapInArrow(parts.PartWriter(str(folder)), "name string")
        rows = names.collect()
        for number, row in enumerate(rows):
            (folder / row.name).rename(folder / f"part-{number:06d}-0000.parquet")
        for path in folder.glob("part-*-*-*.parquet"):
            path.unlink()  # a task that ran twice has written it
        return
    with python_for_tasks(context):
        pieces = frame.mapInArrow(parts.as_bytes, "piece binary")
    rows = pieces.toLocalIterator()
    batches = itertools.chain.from_iterable(pa.ipc.open_stream(row.piece) for row in rows)
    first = next(batches, None)
    if first is not None:
        _write(itertools.chain([first], batches), first.schema, folder)


def _is_seen_by_executors(context: Any, folder: Path) -> bool:
    if context.master.startswith("local") and not context.master.startswith("local-cluster"):
        return True
    marker = folder / f".seen-{uuid.uuid4().hex}"
    marker.touch()
    path = str(marker)
    try:
        tasks = 2 * max(2, context.defaultParallelism)
        looks = context.parallelize(range(tasks), tasks).map(lambda _: os.path.exists(path))
        with python_for_tasks(context):
            _ = looks._jrdd  # now its Python is chosen
        return all(looks.collect())
    finally:
        marker.unlink()


def _write(batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: Path) -> None:
    for _ in parts.write_parts(batches, schema, str(folder), "part-000000"):
        pass
