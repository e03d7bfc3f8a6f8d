"""Writes the rows of any source as TFRecord files of `tf.train.Example`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.opening import open_source
from cargobike.data.sources.source import Source
from cargobike.data.sources.tfrecords.examples import BYTES, FLOAT, INT64, packed_integers, sized
from cargobike.data.sources.tfrecords.framing import framed
from cargobike.data.tensors import tensor_of
from cargobike.store.files.storages import open_storage

_FILE_BYTES = 256 << 20
_ROWS_AT_ONCE = 8192


def write_tfrecord(source: object, url: str | os.PathLike[str], *, file_bytes: int = _FILE_BYTES) -> list[str]:
    """Write rows as TFRecord files, for programs that read those; TensorFlow is not needed.

    Whole numbers and truth values become int64 lists, floating-point numbers float lists (which hold 32 bits: others
    are rounded), text and bytes bytes lists. A tensor of bytes (`uint8`) becomes one value of bytes, another tensor a
    list of its numbers. A null becomes an absent feature.

    Args:
        source: What `data.Loader` reads: a table, a path, a DataFrame.
        url: The folder, a path or an address; files are called `part-00000.tfrecord` and so on.
        file_bytes: How large files become, about.

    Returns:
        The paths of the files below the folder. Each appears whole or not at all.

    Raises:
        InvalidInputError: If a column cannot be kept in an Example, with what to do.
    """
    opened = open_source(source)
    check_columns(opened.schema)
    storage = open_storage(url)
    written: list[str] = []
    records = _records(opened)
    with tempfile.TemporaryDirectory(prefix="cargobike-tfrecord-") as folder:
        local = Path(folder, "part.tfrecord")
        while True:
            size = 0
            with local.open("wb") as file:
                for record in records:
                    size += file.write(framed(record))
                    if size >= file_bytes:
                        break
            if not size and written:
                return written
            name = f"part-{len(written):05d}.tfrecord"
            storage.write(name, local)
            written.append(name)


def _records(source: Source) -> Iterator[bytes]:
    for group in range(len(source.groups)):
        table = source.read(group)
        for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield from encode_rows(batch, source.schema)


def encode_rows(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[bytes]:
    """Yield the rows of a batch as Examples; features are sorted by name."""
    columns = [_entries(batch.column(name), schema.field(name)) for name in sorted(batch.schema.names)]
    if not columns:
        yield from [b""] * batch.num_rows
        return
    for entries in zip(*columns, strict=True):
        yield sized(b"\x0a", b"".join(entries))


def check_columns(schema: pa.Schema) -> None:
    """Refuse columns that an Example cannot hold; names all of them."""
    mistakes = [f"{field.name!r} is {field.type}. {_INSTEAD}" for field in schema if _kind(field) is None]
    if mistakes:
        raise InvalidInputError("A tf.train.Example holds numbers, text and bytes, and lists of them.", mistakes)


_INSTEAD = "Make it numbers or text first, or leave it out."


def _kind(field: pa.Field) -> int | None:
    """Return which list of an Example holds the values of a column."""
    tensor = tensor_of(field)
    if tensor is not None:
        return BYTES if tensor.dtype == "uint8" else FLOAT if tensor.dtype.startswith("float") else INT64
    kind = field.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return INT64
    if pa.types.is_floating(kind):
        return FLOAT
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return BYTES if is_text or is_bytes else None


def _entries(column: pa.Array, field: pa.Field) -> Sequence[bytes]:
    """Return one column as it stands in each Example: name and values, or nothing where it is null."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = _kind(field)
    assert kind is not None
    name = sized(b"\x0a", field.name.encode())
    bodies = _bodies(column, field, kind)
    valid = column.is_valid().to_pylist() if column.null_count else [True] * len(column)
    return [
        sized(b"\x0a", name + sized(b"\x12", sized(_TAGS[kind], body))) if is_valid else b""
        for body, is_valid in zip(bodies, valid, strict=True)
    ]


_TAGS = {kind: bytes([kind << 3 | 2]) for kind in (BYTES, FLOAT, INT64)}


def _bodies(column: pa.Array, field: pa.Field, kind: int) -> Iterator[bytes]:
    """Yield the values of each row as they stand in their list."""
    tensor = tensor_of(field)
    if tensor is not None:
        return _tensor_bodies(column, tensor.dtype, kind)
    is_list = pa.types.is_nested(column.type)
    if kind == BYTES:
        values = _as_binary(column) if not is_list else column
        return (
            b"".join([sized(b"\x0a", _as_bytes(value)) for value in (row or () if is_list else (row or b"",))])
            for row in values.to_pylist()
        )
    pack = _PACK[kind]
    if is_list:
        rows = (() if row is None else row for row in column.to_pylist())
        return (sized(b"\x0a", pack(_numbers(row, field.name))) if len(row) else b"" for row in rows)
    numbers = _filled(column, kind, field.name)
    if kind == FLOAT:
        packed = numbers.astype("<f4").tobytes()
        return (b"\x0a\x04" + packed[place : place + 4] for place in range(0, len(packed), 4))
    return (sized(b"\x0a", pack(numbers[row : row + 1])) for row in range(len(numbers)))


def _tensor_bodies(column: pa.Array, dtype: str, kind: int) -> Iterator[bytes]:
    for value in column.to_pylist():
        if value is None:
            yield b""
        elif kind == BYTES:
            yield sized(b"\x0a", value)
        else:
            yield sized(b"\x0a", _PACK[kind](np.frombuffer(value, dtype).astype("<f4" if kind == FLOAT else "<i8")))


def _as_binary(column: pa.Array) -> pa.Array:
    return column.cast(pa.large_binary()) if not pa.types.is_fixed_size_binary(column.type) else column


def _as_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


def _numbers(values: Sequence[Any], name: str) -> Any:
    if any(value is None for value in values):
        raise InvalidInputError(f"A list of {name!r} has a null in it, which an Example cannot hold. Fill it first.")
    return np.array(values)


def _filled(column: pa.Array, kind: int, name: str) -> Any:
    if pa.types.is_uint64(column.type) and len(column) and (pc.max(column).as_py() or 0) >= 2**63:
        raise InvalidInputError(f"{name!r} has numbers of 2**63 and more, which an Example cannot hold.")
    wanted = pa.int64() if kind == INT64 else column.type
    return pc.fill_null(column.cast(wanted), 0).to_numpy(zero_copy_only=False)


def _packed_floats(values: Any) -> bytes:
    return bytes(np.asarray(values).astype("<f4").tobytes())


def _packed_integers(values: Any) -> bytes:
    return packed_integers(np.asarray(values).astype(np.int64))


_PACK: dict[int, Callable[[Any], bytes]] = {FLOAT: _packed_floats, INT64: _packed_integers}
