"""Writes a Spark DataFrame: by its executors where they see the table's place, else through the driver."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pyarrow as pa

from cargobike.data.spark_types import for_arrow
from cargobike.data.tables.files import digests, executors, grouping, part_files
from cargobike.data.tables.files.part_files import Part
from cargobike.data.tables.rows.incoming import Incoming
from cargobike.data.tables.rows.types import stored_schema
from cargobike.data.tables.writer import TableWriter
from cargobike.engines.spark.pythons import python_for_tasks


def is_spark(source: object) -> bool:
    """Tell whether something is a Spark DataFrame."""
    return hasattr(source, "mapInArrow")


def write_spark(data: Any, writer: TableWriter) -> None:
    """Write all rows of a DataFrame in their order; partitions are not mixed."""
    from pyspark import cloudpickle  # noqa: PLC0415 - with a Spark DataFrame it is loaded already

    for module in (executors, part_files, grouping, digests):
        cloudpickle.register_pickle_by_value(module)
    frame = for_arrow(data)
    context = data.sparkSession.sparkContext
    if is_seen_by_executors(context, writer):
        schema = _schema(frame)
        task = executors.PartWriter(writer.place, writer.folder, writer.token, schema)
        with python_for_tasks(context):
            described = frame.mapInArrow(task, "part string")
        parts = [json.loads(row.part) for row in described.toLocalIterator()]
        writer.add(schema, [Part(*part) for part in parts])
        return
    with python_for_tasks(context):
        pieces = frame.mapInArrow(executors.as_bytes, "piece binary")
    rows = pieces.toLocalIterator()
    batches = itertools.chain.from_iterable(pa.ipc.open_stream(row.piece) for row in rows)
    empty = pa.RecordBatch.from_pylist([], schema=_schema(frame))
    writer.write(Incoming("spark", itertools.chain(batches, [empty])))


def _schema(frame: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    return stored_schema(to_arrow_schema(frame.schema, timezone=zone))


def is_seen_by_executors(context: Any, writer: TableWriter) -> bool:
    """Tell whether executors see the place that the driver writes to; it has announced itself there."""
    if "://" not in writer.place and context.master.startswith("local") and "cluster" not in context.master:
        return True
    tasks = 2 * max(2, context.defaultParallelism)
    looks = context.parallelize(range(tasks), tasks).map(executors.Seeing(writer.place, writer.claim_path))
    with python_for_tasks(context):
        _ = looks._jrdd  # now its Python is chosen
    return all(looks.collect())
