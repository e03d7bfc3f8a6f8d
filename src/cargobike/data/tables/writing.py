"""Writes a table from whatever a user gives."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.origins import Origin
from cargobike.core.registering.steps import own_step
from cargobike.data.tables.addresses import Address, writable_address
from cargobike.data.tables.rows.incoming import Each, incoming_of
from cargobike.data.tables.spark_writing import is_spark, write_spark
from cargobike.data.tables.table import Table
from cargobike.data.tables.writer import TableWriter, Told


@own_step("data.write", recover="cargobike.data.tables.recovering:recover_write")
def write(
    source: Any,
    url: str | os.PathLike[str],
    *,
    schema: pa.Schema | None = None,
    each: Each | None = None,
    progress: Told | None = None,
) -> Table:
    """Write data as the next version of a table, which appears at once or not at all.

    Args:
        source: A pandas, polars or Spark DataFrame, an Arrow table, a dict of arrays, a NumPy array, another table; a
            path, glob or URL of Parquet, CSV or JSON-lines files; or an iterator of dicts, of arrays or of tables.
            Files and iterators are read piece by piece, Spark's executors write themselves if they see the place.
        url: A bare name, kept in the project; or a path or URL anywhere, such as `s3://bucket/higgs`.
        schema: Types of columns that are not to be inferred.
        each: What each dict of arrays, or each array, of an iterator is: a `"row"` or a `"batch"` of rows.
        progress: Called with a `Progress` after each row group.

    Raises:
        InvalidInputError: If the data cannot be written; names row and column.
        StoreError: If the storage does not take it.

    Example:
        >>> from cargobike import data
        >>> table = data.write({"x": [1.0, 2.0], "label": ["cat", "dog"]}, "pets")
        >>> table.version, table.num_rows, table.schema.names
        (1, 2, ['x', 'label'])
    """
    return write_to(writable_address(url), source, schema=schema, each=each, progress=progress)


def write_to(
    address: Address,
    source: Any,
    *,
    schema: pa.Schema | None = None,
    each: Each | None = None,
    progress: Told | None = None,
    may_be_empty: bool = True,
    origin: Origin | None = None,
) -> Table:
    """Write data as the next version of the table at an address; see `write`.

    `origin` says what rows come from that pass through the memory of this process.
    """
    if is_spark(source):
        if schema is not None:
            raise InvalidInputError("schema= was given with a Spark DataFrame; cast its columns there instead.")
        with TableWriter(address, "spark", progress, may_be_empty=may_be_empty) as writer:
            write_spark(source, writer)
            return writer.commit()
    incoming = incoming_of(source, each=each, types=schema)
    total, origin = incoming.num_rows, origin or incoming.origin
    with TableWriter(address, incoming.source, progress, total, may_be_empty=may_be_empty, origin=origin) as writer:
        writer.write(incoming, schema)
        return writer.commit()
