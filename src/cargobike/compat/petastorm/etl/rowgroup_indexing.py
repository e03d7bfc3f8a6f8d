"""Indexes of row groups: built by reading the columns that they are about, and kept in the metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cargobike.compat.noticing import notice
from cargobike.compat.petastorm.etl.rowgroup_indexers import RowGroupIndexerBase
from cargobike.compat.petastorm.reading.decoding import decode_values
from cargobike.compat.petastorm.stored.indexes import read_indexes, write_indexes
from cargobike.compat.petastorm.stored.metadata import (
    ROWGROUPS_INDEX_KEY,
    read_metadata,
    schema_in,
    write_metadata,
)
from cargobike.compat.petastorm.stored.places import Place, open_places
from cargobike.core.errors import InvalidInputError, nearest

__all__ = ["ROWGROUPS_INDEX_KEY", "build_rowgroup_index", "get_row_group_indexes"]


def build_rowgroup_index(
    dataset_url: str, spark_context: Any, indexers: Sequence[RowGroupIndexerBase], hdfs_driver: str = "libhdfs3"
) -> None:
    """Build indexes of a data set, and keep them in its metadata.

    Args:
        dataset_url: Where it is.
        spark_context: Without effect: the columns are read here, one row group at a time. `None` will do.
        indexers: The indexes, empty.
        hdfs_driver: Without effect.

    Raises:
        InvalidInputError: If an index is about a field that does not exist.
    """
    notice("petastorm.etl.rowgroup_indexing.build_rowgroup_index")
    place = Place(dataset_url)
    metadata = read_metadata(place)
    schema = schema_in(metadata, place.shown)
    names = list(dict.fromkeys(name for indexer in indexers for name in indexer.column_names))
    unknown = [name for name in names if name not in schema.fields]
    if unknown or not indexers:
        raise InvalidInputError(
            f"No index can be built of {place.shown}.",
            [f"There is no field {name!r}.{nearest(name, schema.fields)}" for name in unknown] or ["Give indexers."],
        )
    source = open_places([place])
    try:
        for group in range(len(source.groups)):
            columns = decode_values(source.read(group, names), schema)
            rows = [dict(zip(names, row, strict=True)) for row in zip(*(columns[name] for name in names), strict=True)]
            for indexer in indexers:
                indexer.build_index(rows, source.row_group(group).position)
        stored = pa.schema([field for field in source.schema if field.name not in source.partitions])
    finally:
        source.close()
    pickled = write_indexes({indexer.index_name: indexer for indexer in indexers})
    write_metadata(place, {ROWGROUPS_INDEX_KEY: pickled}, stored)


def get_row_group_indexes(dataset_url: str) -> dict[str, RowGroupIndexerBase]:
    """Return the indexes of a data set by name."""
    return read_indexes(read_metadata(Place(dataset_url)).get(ROWGROUPS_INDEX_KEY))
