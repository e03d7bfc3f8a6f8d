"""Data sets as RDDs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cargobike.compat.noticing import notice
from cargobike.compat.petastorm.etl.dataset_metadata import get_schema_from_dataset_url
from cargobike.compat.petastorm.utils import decode_row


def dataset_as_rdd(
    dataset_url: str, spark_session: Any, schema_fields: Sequence[Any] | None = None, hdfs_driver: str = "libhdfs3"
) -> Any:
    """Return the rows of a data set as an RDD of namedtuples.

    Args:
        dataset_url: Where it is; Spark has to reach it, too.
        spark_session: The Spark session that reads.
        schema_fields: Fields and regular expressions; all fields by default.
        hdfs_driver: Without effect.
    """
    notice("petastorm.spark_utils.dataset_as_rdd")
    schema = get_schema_from_dataset_url(dataset_url)
    if schema_fields is not None:
        schema = schema.create_schema_view(schema_fields)
    frame = spark_session.read.parquet(dataset_url).select(*schema.fields)
    return frame.rdd.map(lambda row: schema.make_namedtuple(**decode_row(row.asDict(), schema)))
