"""Formats of training datasets: files whose names begin as readers look for them, `part-r-00000`."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq

from cargobike import data
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.lazy import load


class Format(NamedTuple):
    """How rows become files, and files rows.

    Attributes:
        write: Writes rows into a folder of this machine.
        read: Reads files of this machine.
        suffix: What the names of files end with.
    """

    write: Callable[[pa.Table, Path], None]
    read: Callable[[Sequence[Path]], pa.Table]
    suffix: str = ""


def format_of(name: str) -> Format:
    """Return a format.

    Raises:
        InvalidInputError: If there is none of that name; says what to do.
    """
    if name in _REFUSED:
        raise InvalidInputError(f"data_format={name!r}: {_REFUSED[name]}")
    if name not in FORMATS:
        raise InvalidInputError(
            f"data_format={name!r} was given; there are {', '.join(FORMATS)}.{nearest(str(name), FORMATS)}"
        )
    return FORMATS[name]


def _write_tfrecords(table: pa.Table, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        for name in data.write_tfrecord(table, folder):
            Path(folder, name).rename(path.with_name(f"{path.name[:-5]}{name[5:10]}"))


def _read_tfrecords(paths: Sequence[Path]) -> pa.Table:
    batches = data.Loader(data.tfrecord([str(path) for path in paths]), to="arrow", nulls="nan", ragged="list")
    return pa.concat_tables([pa.table(batch) for batch in batches])


def _write_separated(separator: str) -> Callable[[pa.Table, Path], None]:
    def write(table: pa.Table, path: Path) -> None:
        try:
            pa_csv.write_csv(table, path, pa_csv.WriteOptions(delimiter=separator))
        except pa.ArrowException as error:
            raise InvalidInputError(f"These rows cannot be written as text: {error}. Use 'parquet'.") from error

    return write


def _read_separated(separator: str) -> Callable[[Sequence[Path]], pa.Table]:
    options = pa_csv.ParseOptions(delimiter=separator)
    return lambda paths: pa.concat_tables([pa_csv.read_csv(path, parse_options=options) for path in paths])


def _write_npy(table: pa.Table, path: Path) -> None:
    np.save(path, _as_array(table), allow_pickle=False)


def _read_npy(paths: Sequence[Path]) -> pa.Table:
    return _as_table([np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) for path in paths])


def _write_hdf5(table: pa.Table, path: Path) -> None:
    with load("h5py:File")(path, "w") as file:
        file.create_dataset("rows", data=_as_array(table))


def _read_hdf5(paths: Sequence[Path]) -> pa.Table:
    arrays = []
    for path in paths:
        with load("h5py:File")(path, "r") as file:
            arrays.append(file["rows"][()])
    return _as_table(arrays)


def _write_avro(table: pa.Table, path: Path) -> None:
    fields = [{"name": one.name, "type": ["null", _avro_type(one.type)]} for one in table.schema]
    schema = {"type": "record", "name": "row", "fields": fields}
    with path.open("wb") as file:
        load("fastavro:writer")(file, schema, table.to_pylist(), codec="deflate")


def _read_avro(paths: Sequence[Path]) -> pa.Table:
    rows = []
    for path in paths:
        with path.open("rb") as file:
            rows += list(load("fastavro:reader")(file))
    return pa.Table.from_pylist(rows)


def _avro_type(kind: Any) -> Any:
    if pa.types.is_list(kind):
        return {"type": "array", "items": _avro_type(kind.value_type)}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros"}
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    tests = {
        "boolean": pa.types.is_boolean,
        "long": pa.types.is_integer,
        "double": pa.types.is_floating,
        "bytes": pa.types.is_binary,
        "string": lambda one: pa.types.is_string(one) or pa.types.is_large_string(one),
    }
    name = next((name for name, test in tests.items() if test(kind)), None)
    if name is None:
        raise InvalidInputError(f"{kind} cannot be written as Avro; use 'parquet'.")
    return name


def _as_array(table: pa.Table) -> Any:
    wrong = [field.name for field in table.schema if not _is_number(field.type)]
    if wrong:
        raise InvalidInputError(f"{', '.join(wrong)} holds no numbers, so that it fits into no array; use 'parquet'.")
    return np.column_stack([table[name].to_numpy() for name in table.column_names])


def _as_table(arrays: Sequence[Any]) -> pa.Table:
    rows = np.concatenate(arrays)
    return pa.table({f"col_{number}": rows[:, number] for number in range(rows.shape[1])})


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


FORMATS: Final = {
    "tfrecords": Format(_write_tfrecords, _read_tfrecords),
    "tfrecord": Format(_write_tfrecords, _read_tfrecords),
    "csv": Format(_write_separated(","), _read_separated(","), ".csv"),
    "tsv": Format(_write_separated("\t"), _read_separated("\t"), ".tsv"),
    "parquet": Format(
        pq.write_table,
        lambda paths: pa.concat_tables([pq.read_table(path, partitioning=None) for path in paths]),
        ".parquet",
    ),
    "orc": Format(
        pa_orc.write_table,
        lambda paths: pa.concat_tables([pa_orc.read_table(path) for path in paths]),
        ".orc",
    ),
    "avro": Format(_write_avro, _read_avro, ".avro"),
    "npy": Format(_write_npy, _read_npy, ".npy"),
    "hdf5": Format(_write_hdf5, _read_hdf5, ".hdf5"),
}
"""By name."""

_REFUSED: Final = {
    "image": "images are packed into a table: cargobike.data.pack(folder, 'images'), and read with data.Loader.",
    "petastorm": "write it with cargobike.compat.petastorm: materialize_dataset(spark, url, schema).",
}
