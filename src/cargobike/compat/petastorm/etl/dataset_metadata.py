"""Write data sets that have a schema, and read their schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.compat.noticing import notice
from cargobike.compat.petastorm.errors import PetastormMetadataError, PetastormMetadataGenerationError
from cargobike.compat.petastorm.stored.metadata import (
    ROW_GROUPS_PER_FILE_KEY,
    UNISCHEMA_KEY,
    read_metadata,
    row_groups_json,
    schema_in,
    write_metadata,
)
from cargobike.compat.petastorm.stored.places import Place, open_places, places_of
from cargobike.compat.petastorm.stored.schemas import write_schema
from cargobike.compat.petastorm.stored.spark_types import as_arrow
from cargobike.compat.petastorm.unischema import Unischema, encode_row, stored_type
from cargobike.core.errors import CargobikeError, InvalidInputError

__all__ = [
    "PetastormMetadataError",
    "PetastormMetadataGenerationError",
    "get_schema_from_dataset_url",
    "materialize_dataset",
    "materialize_rows",
]

_SETTINGS: Final = (
    "parquet.summary.metadata.level",
    "parquet.summary.metadata.propagate-errors",
    "parquet.block.size.row.check.min",
    "parquet.row-group.size.row.check.min",
    "parquet.block.size",
)


@contextmanager
def materialize_dataset(
    spark: Any,
    dataset_url: str,
    schema: Unischema,
    row_group_size_mb: int | None = None,
    use_summary_metadata: bool = False,
    filesystem_factory: Callable[[], Any] | None = None,
) -> Iterator[None]:
    """Write a data set inside the block; afterwards its schema is added, so that `make_reader` understands it.

    Args:
        spark: The Spark session that writes; `None` if something else does.
        dataset_url: Where it is written.
        schema: Its schema.
        row_group_size_mb: How large the row groups are that Spark writes.
        use_summary_metadata: Whether Spark writes the footers of all files into one, besides.
        filesystem_factory: Makes a file system of Arrow's or fsspec's on which the data set lies.

    Raises:
        PetastormMetadataGenerationError: If nothing was written, or the metadata cannot be.
    """
    notice("petastorm.etl.dataset_metadata.materialize_dataset")
    pickled = write_schema(schema)  # now, so that a schema that cannot be stored is refused before an hour of writing
    settings: Any = None if spark is None else spark.sparkContext._jsc.hadoopConfiguration()
    before = {} if settings is None else {name: settings.get(name) for name in _SETTINGS}
    try:
        if settings is not None:
            _set_up(settings, row_group_size_mb, use_summary_metadata)
        yield
    finally:
        for name, value in before.items():
            settings.set(name, value) if value is not None else settings.unset(name)
    _finish(Place(dataset_url, filesystem_factory() if filesystem_factory is not None else None), pickled)


def _set_up(settings: Any, row_group_size_mb: int | None, use_summary_metadata: bool) -> None:
    settings.set("parquet.summary.metadata.level", "ALL" if use_summary_metadata else "NONE")
    settings.setBoolean("parquet.summary.metadata.propagate-errors", True)
    settings.setInt("parquet.block.size.row.check.min", 3)  # rows may be large: look at the size after a few
    settings.setInt("parquet.row-group.size.row.check.min", 3)
    if row_group_size_mb:
        settings.setInt("parquet.block.size", row_group_size_mb << 20)


def _finish(place: Place, pickled: bytes) -> None:
    try:
        source = open_places([place])
        columns = pa.schema([field for field in source.schema if field.name not in source.partitions])
        counts = row_groups_json(source.row_groups_per_file())
        source.close()
        write_metadata(place, {UNISCHEMA_KEY: pickled, ROW_GROUPS_PER_FILE_KEY: counts}, columns)
    except CargobikeError as error:
        raise PetastormMetadataGenerationError(
            f"The metadata of {place.shown} could not be written: {error} What was written exists; add the metadata "
            "with petastorm-generate-metadata once this is mended."
        ) from error


def materialize_rows(
    dataset_url: str,
    schema: Unischema,
    rows: Iterable[Mapping[str, Any]],
    *,
    rows_per_group: int = 1000,
    groups_per_file: int = 100,
) -> int:
    """Write rows as a data set without Spark; returns how many there were.

    Args:
        dataset_url: Where to write it: a folder that has no data set yet.
        schema: Its schema.
        rows: A dict for each row.
        rows_per_group: How many rows a row group has.
        groups_per_file: How many row groups a file has.

    Raises:
        InvalidInputError: If a row does not fit the schema, or there is a data set already.
    """
    place = Place(dataset_url)
    pickled = write_schema(schema)
    if rows_per_group < 1 or groups_per_file < 1:
        raise InvalidInputError("rows_per_group and groups_per_file are whole numbers, at least 1.")
    if read_metadata(place):
        raise InvalidInputError(f"There is a data set at {place.shown} already; write to another place.")
    columns = pa.schema(
        [pa.field(name, as_arrow(stored_type(field)), bool(field.nullable)) for name, field in schema.fields.items()]
    )
    count = 0
    for number, table in enumerate(_tables(schema, rows, columns, rows_per_group * groups_per_file)):
        file = pa.BufferOutputStream()
        pq.write_table(table, file, row_group_size=rows_per_group)
        place.write(f"part-{number:05}.parquet", file.getvalue().to_pybytes())
        count += table.num_rows
    _finish(place, pickled)
    return count


def _tables(schema: Unischema, rows: Iterable[Mapping[str, Any]], columns: pa.Schema, size: int) -> Iterator[pa.Table]:
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append({name: _plain(value) for name, value in encode_row(schema, row).items()})
        if len(waiting) == size:
            yield pa.Table.from_pylist(waiting, columns)
            waiting = []
    if waiting:
        yield pa.Table.from_pylist(waiting, columns)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def get_schema_from_dataset_url(
    dataset_url_or_urls: Any,
    hdfs_driver: str = "libhdfs3",
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
) -> Unischema:
    """Return the schema of a data set.

    Raises:
        PetastormMetadataError: If it has none.
        UntrustedError: If the schema's pickle names anything that no schema needs.
    """
    notice("petastorm.etl.dataset_metadata.get_schema_from_dataset_url")
    place = places_of(dataset_url_or_urls, filesystem, storage_options)[0]
    return schema_in(read_metadata(place), place.shown)
