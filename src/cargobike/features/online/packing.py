"""How a row is packed for look-ups: a fixed part that one call unpacks, and a tail for texts and lists.

A packed row begins with the number of its format, its event time and one bit for each null. Features that always need
the same number of bytes follow; all others are in the tail, as MessagePack.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NO_TIME: Final = -(2**63)
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_CODES: Final = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "halffloat": "e", "float": "f", "double": "d", "bool": "?",
}  # fmt: skip
"""Types of Arrow that have a code in `struct`."""
_TIME: Final = "timestamp"


class Format(msgspec.Struct, frozen=True):
    """Which features a packed row has, in order, with their types as Arrow writes them."""

    features: tuple[tuple[str, str], ...]

    def packing(self, number: int) -> Packing:
        """Return what packs and unpacks such rows; `number` is written into each of them."""
        return Packing(self, number)


class Packing:
    """Packs rows of one format, and unpacks them.

    Args:
        format: The features.
        number: Tells this format from others that rows of the same group had before.
    """

    def __init__(self, format: Format, number: int) -> None:
        self.format = format
        self.number = number
        self.names = [name for name, _ in format.features]
        self.fixed = [(name, _code(kind)) for name, kind in format.features if _code(kind)]
        self.tail = [name for name, kind in format.features if not _code(kind)]
        self.times = [name for name, kind in format.features if kind.startswith(_TIME)]
        self.words = max(1, (len(self.names) + 63) // 64)
        codes = "".join(code for _, code in self.fixed)
        self.struct: Final = struct.Struct(f"<Hq{self.words}Q{codes}")
        self.places = {name: 2 + self.words + number for number, (name, _) in enumerate(self.fixed)}

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The fixed part as NumPy sees it."""
        head = [("format", "<u2"), ("time", "<i8"), ("nulls", "<u8", (self.words,))]
        return np.dtype([*head, *((f"f{number}", f"<{_numpy(code)}") for number, (_, code) in enumerate(self.fixed))])

    def pack(self, table: pa.Table, event_time: str) -> list[bytes]:
        """Return each row of a table as bytes."""
        rows = np.zeros(len(table), self.dtype)
        rows["format"] = self.number
        rows["time"] = _numbers(table[event_time], np.int64(NO_TIME)) if event_time else NO_TIME
        for number, name in enumerate(self.names):
            absent = table[name].is_null().to_numpy().astype(np.uint64)
            rows["nulls"][:, number // 64] |= absent << np.uint64(number % 64)
        for number, (name, _) in enumerate(self.fixed):
            rows[f"f{number}"] = _numbers(table[name], 0)
        packed: list[bytes] = rows.view(f"V{self.dtype.itemsize}").tolist()
        if not self.tail:
            return packed
        values = zip(*(table[name].to_pylist() for name in self.tail), strict=True)
        encode = msgspec.msgpack.encode
        return [head + encode(tail) for head, tail in zip(packed, values, strict=True)]

    def unpack(self, row: bytes) -> tuple[tuple[Any, ...], list[Any]]:
        """Return the fixed part of a packed row, as `places` names it, and the values of its tail."""
        if self.tail:
            return self.struct.unpack_from(row), msgspec.msgpack.decode(row[self.struct.size :])
        return self.struct.unpack(row), []

    def value(self, name: str, fixed: Sequence[Any], tail: Sequence[Any]) -> Any:
        """Return the value of a feature in an unpacked row."""
        number = self.names.index(name)
        if fixed[2 + number // 64] >> (number % 64) & 1:
            return None
        if name not in self.places:
            return tail[self.tail.index(name)]
        value = fixed[self.places[name]]
        return as_moment(value) if name in self.times else value


def format_of(schema: pa.Schema, features: Sequence[str]) -> Format:
    """Return how rows with such columns are packed."""
    kinds = []
    for name in features:
        kind = schema.field(name).type
        kinds.append((name, f"{_TIME}[us]" if pa.types.is_timestamp(kind) else str(kind)))
    return Format(tuple(kinds))


def time_of(row: bytes) -> int:
    """Return the event time of a packed row of any format, in microseconds since 1970."""
    return int.from_bytes(row[2:10], "little", signed=True)


def as_moment(microseconds: int) -> datetime.datetime:
    """Return a time of a packed row."""
    return _EPOCH + datetime.timedelta(microseconds=microseconds)


def _code(kind: str) -> str:
    return "q" if kind.startswith(_TIME) else _CODES.get(kind, "")


def _numpy(code: str) -> str:
    return np.dtype(code).str.lstrip("<>|=") if code != "?" else "?"


def _numbers(values: pa.ChunkedArray, absent: Any) -> np.ndarray:
    """Return values as NumPy numbers, with something in place of nulls."""
    if pa.types.is_timestamp(values.type):
        values = pc.cast(pc.cast(values, pa.timestamp("us", tz=values.type.tz), safe=False), pa.int64())
    if not values.null_count:
        return np.asarray(values.to_numpy())
    return np.asarray(pc.fill_null(values, pa.scalar(absent).cast(values.type)).to_numpy())
