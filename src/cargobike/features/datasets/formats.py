"""Formats that other programs read, written beside the table of a part."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.keeping import table_keeper
from cargobike.store.files.storage import Storage

Export = Callable[[pa.Table, Storage, str], None]


def check_format(format: str) -> None:
    """Refuse a format that is not known.

    Raises:
        InvalidInputError: Listing those that are.
    """
    known = ["parquet", *FORMATS]
    if format not in known:
        advice = nearest(str(format), known)
        raise InvalidInputError(f"format={format!r} was given; there are {', '.join(known)}.{advice}")


def _csv(table: pa.Table, storage: Storage, path: str) -> None:
    sink = io.BytesIO()
    try:
        pa_csv.write_csv(table, sink)
    except pa.ArrowException as error:
        raise InvalidInputError(f"These rows cannot be written as CSV: {error}. Use format='parquet'.") from error
    storage.write(f"{path}/part-00000.csv", sink.getvalue())


def _numpy(table: pa.Table, storage: Storage, path: str) -> None:
    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    if nested:
        raise InvalidInputError(f"{', '.join(nested)} cannot be written as NumPy arrays. Use format='parquet'.")
    for name in table.column_names:
        array = table[name].to_numpy()
        if array.dtype == object:  # text; nulls are empty, since files with objects would have to be unpickled
            array = np.array(["" if value is None else str(value) for value in table[name].to_pylist()], dtype=np.str_)
        sink = io.BytesIO()
        np.save(sink, array, allow_pickle=False)
        storage.write(f"{path}/{name}.npy", sink.getvalue())


def _tfrecord(table: pa.Table, storage: Storage, path: str) -> None:
    # An Example knows no times: they become microseconds since 1970.
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type):
            values = table[field.name].cast(pa.timestamp("us", tz=getattr(field.type, "tz", None)), safe=False)
            table = table.set_column(number, field.name, values.cast(pa.int64()))
    table_keeper().write_tfrecord(table, f"{storage.url}/{path}")


def _delta(table: pa.Table, storage: Storage, path: str) -> None:
    # Optional, and only for this format.
    import deltalake  # noqa: PLC0415

    url = f"{storage.url}/{path}"
    if url.partition("://")[0] in {"hdfs", "viewfs"}:
        raise InvalidInputError("format='delta' cannot be written to HDFS by this library. Use format='parquet'.")
    deltalake.write_deltalake(url, table)


FORMATS: Final[dict[str, Export]] = {"csv": _csv, "tfrecord": _tfrecord, "numpy": _numpy, "delta": _delta}
"""By name, what writes rows below a path of a storage."""
