"""Makes columns of many Examples at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.data.sources.tfrecords import examples, parsing
from cargobike.data.sources.tfrecords.columns import Column
from cargobike.data.sources.tfrecords.examples import BYTES, FLOAT, KIND_NAMES, MalformedError

_LONGEST_LIST = 1 << 31


class MisfitError(ValueError):
    """A record does not fit the columns; says which one and why."""

    def __init__(self, record: int, why: str) -> None:
        super().__init__(why)
        self.record = record


def decode(
    data: bytes, starts: parsing.Places, lengths: parsing.Places, columns: Sequence[Column], known: frozenset[str]
) -> pa.Table:
    """Return a table of Examples.

    Args:
        data: A buffer that holds them.
        starts: Where each begins.
        lengths: How long each is.
        columns: The columns wanted.
        known: The names of all features that may occur.

    Raises:
        MisfitError: If a record is no Example, or does not fit.
    """
    table, odd = _decode(data, starts, lengths, columns, known)
    if odd is None:
        return table
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    records = [data[start : start + length] for start, length in spans]
    for number in np.flatnonzero(odd).tolist():
        records[number] = _plain(records[number], number, columns, known)
    sizes = np.fromiter(map(len, records), np.int64, len(records))
    table, odd = _decode(b"".join(records), np.cumsum(sizes) - sizes, sizes, columns, known)
    if odd is not None:
        raise MisfitError(int(np.argmax(odd)), "this is not a tf.train.Example that can be read")
    return table


def _decode(
    data: bytes, starts: parsing.Places, lengths: parsing.Places, columns: Sequence[Column], known: frozenset[str]
) -> tuple[pa.Table, parsing.Flags | None]:
    """Return a table, or which records have to be brought into another form first."""
    buffer = data + parsing.PADDING
    bytes_of = np.frombuffer(buffer, np.uint8)
    found, odd = parsing.find_in_all(bytes_of, starts, lengths, sorted(known))
    arrays = []
    for column in columns:
        array, is_odd = _Feature(column, buffer, bytes_of, found[column.name]).array(odd)
        odd |= is_odd
        arrays.append(array)
    if odd.any():
        return None, odd
    return pa.Table.from_arrays(arrays, schema=pa.schema([column.field() for column in columns])), None


def _plain(record: bytes, number: int, columns: Sequence[Column], known: frozenset[str]) -> bytes:
    """Return an Example in the form in which programs write them."""
    values: dict[str, Any] = {}
    try:
        for name, feature in examples.find_features(record).items():
            values[name] = examples.VALUES[feature.kind](record, feature)
    except MalformedError as error:
        raise MisfitError(number, f"this is not a tf.train.Example: {error}") from None
    new = sorted(values.keys() - known)
    if new:
        raise MisfitError(
            number,
            f"it has a feature {new[0]!r}, which the records that were looked at first do not have. Say what it is: "
            f"schema={{{new[0]!r}: 'float32'}}",
        )
    for column in columns:
        count = len(values.get(column.name, ()))
        if column.kind == BYTES and column.shape is not None and count > 1:
            raise _another_count(number, column.name, count, 1)
    return examples.encode_example(values)


def _another_count(number: int, name: str, count: int, wanted: int) -> MisfitError:
    return MisfitError(
        number,
        f"the feature {name!r} has {count} values, and {wanted} elsewhere. If any number may come, say so: "
        f"schema={{{name!r}: 'list'}}",
    )


class _Feature:
    """The values of one feature in all records."""

    def __init__(self, column: Column, buffer: bytes, data: parsing.Bytes, found: parsing.Found) -> None:
        self._column, self._buffer, self._data, self._found = column, buffer, data, found
        self._view = memoryview(buffer)

    def array(self, ignored: parsing.Flags) -> tuple[pa.Array, parsing.Flags]:
        """Return the column, and which records have to be parsed one by one; it is to be thrown away if there are any.

        Raises:
            MisfitError: If a record that is not ignored has another kind of values, or more or fewer of them.
        """
        column, kinds = self._column, self._found.kinds
        wrong = (kinds != 0) & (kinds != column.kind) & ~ignored
        if wrong.any():
            row = int(np.argmax(wrong))
            raise MisfitError(
                row,
                f"the feature {column.name!r} holds {KIND_NAMES[int(kinds[row])]}, and {KIND_NAMES[column.kind]} "
                "elsewhere",
            )
        if column.kind == BYTES and column.shape is None:
            return self._lists_of_bytes(ignored)
        begins, ends, odd = parsing.bodies(self._data, self._found)
        sizes = ends - begins
        if column.kind == BYTES:
            # Several values of bytes do not lie in one piece.
            return self._bytes(begins, ends, self._found.ends > self._found.begins, ignored | odd), odd
        if column.kind == FLOAT:
            odd |= sizes % 4 != 0
            begins, ends, sizes = np.where(odd, 0, begins), np.where(odd, 0, ends), np.where(odd, 0, sizes)
            flat: Any = self._floats(begins, ends)
            counts = sizes // 4
        else:
            flat, counts, is_odd = parsing.integers(parsing.joined(self._view, begins, ends), sizes)
            odd |= is_odd
        if odd.any():
            return None, odd
        return self._numbers(flat, counts, ignored), odd

    def _floats(self, begins: parsing.Places, ends: parsing.Places) -> Any:
        if len(begins) and bool((ends - begins == 4).all()):
            return np.ascontiguousarray(self._data[begins[:, None] + np.arange(4)]).view("<f4")[:, 0]
        return np.frombuffer(parsing.joined(self._view, begins, ends), "<f4")

    def _numbers(self, flat: Any, counts: parsing.Places, ignored: parsing.Flags) -> pa.Array:
        column, field = self._column, self._column.field()
        owners = np.repeat(np.arange(len(counts)), counts)
        flat = self._cast(flat, owners)
        if column.shape is None:
            return _lists(pa.array(flat, field.type.value_type), counts, field.type)
        wanted = column.size if column.shape else 1
        self._check_counts(counts, wanted, ignored)
        present = counts == wanted
        if not present.all():
            whole = np.zeros((len(counts), wanted), flat.dtype)
            whole[present] = flat[present[owners]].reshape(-1, wanted)
            flat = whole.reshape(-1)
        if column.shape:
            return _tensors(flat.tobytes(), field.type, present)
        return pa.array(flat, field.type, mask=None if present.all() else ~present)

    def _check_counts(self, counts: parsing.Places, wanted: int, ignored: parsing.Flags) -> None:
        wrong = (counts != 0) & (counts != wanted) & ~ignored
        if wrong.any():
            row = int(np.argmax(wrong))
            raise _another_count(row, self._column.name, int(counts[row]), wanted)

    def _cast(self, flat: Any, owners: Any) -> Any:
        """Return numbers as the type that was asked for; integers must fit into it."""
        dtype = np.dtype(self._column.dtype)
        if dtype.kind in "iub" and dtype != np.int64:
            low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            wrong = (flat < low) | (flat > min(int(high), 2**63 - 1))
            if wrong.any():
                where = int(np.argmax(wrong))
                raise MisfitError(
                    int(owners[where]), f"the feature {self._column.name!r} holds {flat[where]}, which is no {dtype}"
                )
        return flat.astype(dtype, copy=False)

    def _bytes(
        self, begins: parsing.Places, ends: parsing.Places, present: parsing.Flags, ignored: parsing.Flags
    ) -> pa.Array:
        """Return a column of one value of bytes each, or of tensors that lie there as bytes."""
        column, field = self._column, self._column.field()
        sizes = ends - begins
        if column.is_raw:
            wrong = present & (sizes != column.width) & ~ignored
            if wrong.any():
                row = int(np.argmax(wrong))
                raise MisfitError(
                    row,
                    f"the feature {column.name!r} has {sizes[row]} bytes; a tensor of {column.dtype} {column.shape} "
                    f"has {column.width}",
                )
            if ignored.any():
                return None
            packed = parsing.joined(self._view, begins, ends)
            if not present.all():
                whole = np.zeros((len(sizes), column.width), np.uint8)
                whole[present] = np.frombuffer(packed, np.uint8).reshape(-1, column.width)
                packed = whole.tobytes()
            return _tensors(packed, field.type, present)
        values = _binary(parsing.joined(self._view, begins, ends), sizes, present)
        return self._as_text(values, field.type)

    def _as_text(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        try:
            return values.cast(kind)
        except pa.ArrowInvalid:
            for row, value in enumerate(values.to_pylist()):
                if value is not None and not _is_text(value):
                    raise MisfitError(row, f"the feature {self._column.name!r} is not text in UTF-8") from None
            raise

    def _lists_of_bytes(self, ignored: parsing.Flags) -> tuple[pa.Array, parsing.Flags]:
        field = self._column.field()
        odd = np.zeros(len(ignored), bool)
        counts, values = np.zeros(len(ignored), np.int64), []
        pairs = zip(self._found.begins.tolist(), self._found.ends.tolist(), strict=True)
        for row, (begin, end) in enumerate(pairs):
            if end > begin and not ignored[row]:
                spans: list[tuple[int, int]] = []
                try:
                    examples.add_values(self._buffer, begin, end, BYTES, spans)
                except MalformedError:
                    odd[row] = True
                values += [self._buffer[low:high] for low, high in spans]
                counts[row] = len(spans)
        flat = self._as_text(pa.array(values, pa.binary()), field.type.value_type)
        return _lists(flat, counts, field.type), odd


def _lists(flat: pa.Array, counts: parsing.Places, kind: pa.DataType) -> pa.Array:
    """Return lists; where a feature is absent, an empty one, as TensorFlow has it."""
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, type=kind)


def _binary(packed: bytes, sizes: parsing.Places, present: parsing.Flags) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(packed)]
    values = pa.BinaryArray.from_buffers(pa.binary(), len(sizes), buffers)
    return values if present.all() else pc.if_else(pa.array(present), values, pa.scalar(None, pa.binary()))


def _tensors(packed: bytes, kind: pa.DataType, present: parsing.Flags) -> pa.Array:
    values = pa.FixedSizeBinaryArray.from_buffers(kind, len(present), [None, pa.py_buffer(packed)])
    return values if present.all() else pc.if_else(pa.array(present), values, pa.scalar(None, kind))


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
