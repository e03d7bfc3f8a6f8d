"""Read the files of a group with Spark, wherever they lie.

Spark reads a disk that its executors see, and HDFS, by itself. For S3 it would need libraries for the JVM that pyspark
does not bring; so its executors read from there, and from any other storage, through Arrow, as Cargobike does
elsewhere. They need Cargobike and credentials for that. Where they lack them, the driver reads and hands rows to them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from cargobike.store.history.environment import without_credentials

BY_SPARK: Final = ("hdfs", "viewfs")
"""Schemes that every Spark reads by itself."""
_ANSWER_S: Final = 10.0

_log = logging.getLogger(__name__)


def read_rows(spark: Any, rows: ds.Dataset, url: str, names: list[str]) -> Any:
    """Return rows of a group as a Spark DataFrame; columns that a file lacks are null.

    Args:
        spark: The session.
        rows: The rows.
        url: Where the files of the group lie: a folder or a URL.
        names: The columns that are needed.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - loaded only where Spark is used

    if not isinstance(rows, ds.FileSystemDataset):
        return spark.createDataFrame(rows.to_table(columns=names))
    schema = pa.schema([rows.schema.field(name) for name in names])
    scheme, _, rest = url.partition("://")
    if not rest:
        uris = [f"file://{path}" for path in rows.files]
        return spark.read.schema(from_arrow_schema(schema)).parquet(*uris)
    # Arrow's names begin at the storage's root or at the project's; both have `features/<group>/v<version>` in them.
    folder = "/".join(url.rsplit("/", 3)[1:])
    paths = [path.rpartition(f"{folder}/")[2] for path in rows.files]
    if scheme in BY_SPARK:
        return spark.read.schema(from_arrow_schema(schema)).parquet(*(f"{url}/{path}" for path in paths))
    if not _is_reached(spark.sparkContext, url, paths[0]):
        _log.warning(
            "Spark's executors do not reach %s: they lack Cargobike, its library for this storage, or credentials. The "
            "rows pass through the driver.",
            without_credentials(url),
        )
        return spark.createDataFrame(rows.to_table(columns=names))
    frame = spark.createDataFrame([(path,) for path in paths], "path string").repartition(len(paths))
    return frame.mapInArrow(_reader(url, schema), from_arrow_schema(schema))


def _reader(url: str, schema: pa.Schema) -> Any:
    """Return what reads files in an executor; a function inside of one, so that it travels by value."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from cargobike.store.files.storages import open_storage  # noqa: PLC0415 - in the executor

        filesystem, root = open_storage(url).arrow()
        for batch in batches:
            for path in batch.column(0).to_pylist():
                place = f"{root}/{path}" if root else path
                yield from ds.dataset(place, schema=schema, format="parquet", filesystem=filesystem).to_batches()

    return read


def _is_reached(context: Any, url: str, path: str) -> bool:
    """Tell whether an executor sees a file."""

    def looks(_: int) -> bool:
        try:
            from cargobike.store.files.storages import open_storage  # noqa: PLC0415 - it may be missing there

            return open_storage(url, timeout_s=_ANSWER_S).stat(path) is not None
        except Exception:  # noqa: BLE001 - whatever it is, the driver reads instead
            return False

    return all(context.parallelize(range(2), 2).map(looks).collect())
