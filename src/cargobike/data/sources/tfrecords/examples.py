"""Reads and writes the protobuf message `tf.train.Example`, as bytes, without protobuf.

Example   { Features features = 1; }
Features  { map<string, Feature> feature = 1; }
Feature   { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
BytesList { repeated bytes value = 1; }
FloatList { repeated float value = 1; }
Int64List { repeated int64 value = 1; }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BYTES, FLOAT, INT64 = 1, 2, 3
KIND_NAMES = {BYTES: "bytes", FLOAT: "float", INT64: "int64"}

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class MalformedError(ValueError):
    """The bytes are not a `tf.train.Example`."""


class Feature(NamedTuple):
    """Where the values of a feature lie in an Example.

    Each span is one value of bytes, or any number of floats of four bytes, or any number of varints.
    """

    kind: int
    spans: list[tuple[int, int]]


def find_features(data: bytes) -> dict[str, Feature]:
    """Return the features of an Example by name; those that hold no list are left out.

    Raises:
        MalformedError: If the bytes are something else.
    """
    features: dict[str, Feature] = {}
    for number, wire, begin, end in _fields(data, 0, len(data)):
        if number == 2 and wire == _LENGTH:
            raise MalformedError("it is a tf.train.SequenceExample, and only tf.train.Example can be read")
        if number == 1 and wire == _LENGTH:
            for inner, kind, low, high in _fields(data, begin, end):
                if inner == 1 and kind == _LENGTH:
                    _entry(data, low, high, features)
    return {name: feature for name, feature in features.items() if feature.kind}


def _entry(data: bytes, begin: int, end: int, features: dict[str, Feature]) -> None:
    """Read one feature with its name; a name that comes again replaces the earlier one."""
    name, kind = "", 0
    spans: list[tuple[int, int]] = []
    for number, wire, low, high in _fields(data, begin, end):
        if wire != _LENGTH:
            continue
        if number == 1:
            try:
                name = data[low:high].decode()
            except UnicodeDecodeError:
                raise MalformedError(f"the name of a feature at byte {low} is not UTF-8") from None
        elif number == 2:
            for choice, form, first, last in _fields(data, low, high):
                if choice in KIND_NAMES and form == _LENGTH:
                    if choice != kind:
                        kind, spans = choice, []
                    add_values(data, first, last, kind, spans)
    features[name] = Feature(kind, spans)


def add_values(data: bytes, begin: int, end: int, kind: int, spans: list[tuple[int, int]]) -> None:
    """Add where the values of a list lie; numbers may be packed or not."""
    for number, wire, low, high in _fields(data, begin, end):
        if number != 1:
            continue
        if kind == BYTES:
            if wire == _LENGTH:
                spans.append((low, high))
        elif kind == FLOAT:
            if wire == _LENGTH and (high - low) % 4:
                raise MalformedError(f"a list of floats at byte {low} has {high - low} bytes")
            if wire in (_LENGTH, _FIXED32):
                spans.append((low, high))
        elif wire == _LENGTH:
            if high > low and data[high - 1] & 0x80:
                raise MalformedError(f"a list of integers at byte {low} is cut off")
            spans.append((low, high))
        elif wire == _VARINT:
            spans.append((low, high))


def _fields(data: bytes, place: int, end: int) -> Iterable[tuple[int, int, int, int]]:
    """Yield number, wire type, and begin and end of the value of each field of a message."""
    while place < end:
        tag = data[place]
        place += 1
        if tag & 0x80:
            tag, place = _varint(data, place - 1, end)
        number, wire = tag >> 3, tag & 7
        if number == 0 or tag >= 1 << 32:
            raise MalformedError(f"there is no field with the number {number}, at byte {place}")
        if wire == _LENGTH:
            if place < end and data[place] < 0x80:
                size = data[place]
                place += 1
            else:
                size, place = _varint(data, place, end)
            after = place + size
        elif wire == _VARINT:
            after = _varint(data, place, end)[1]
        elif wire in (_FIXED32, _FIXED64):
            after = place + (4 if wire == _FIXED32 else 8)
        else:
            raise MalformedError(f"there is no field of the type {wire}, at byte {place}")
        if after > end:
            raise MalformedError(f"a field of {after - place} bytes at byte {place} is cut off")
        yield number, wire, place, after
        place = after


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    for at in range(place, min(end, place + 10)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + 1
        shift += 7
    raise MalformedError(f"a number at byte {place} does not end")


def floats_of(data: bytes, feature: Feature) -> npt.NDArray[np.float32]:
    """Return the values of a feature of floats."""
    if len(feature.spans) == 1:
        low, high = feature.spans[0]
        return np.frombuffer(data, "<f4", (high - low) // 4, low)
    return np.frombuffer(b"".join([data[low:high] for low, high in feature.spans]), "<f4")


def integers_of(data: bytes, feature: Feature) -> npt.NDArray[np.int64]:
    """Return the values of a feature of integers.

    Raises:
        MalformedError: If a number is too long.
    """
    packed = np.frombuffer(b"".join([data[low:high] for low, high in feature.spans]), np.uint8)
    ends = np.flatnonzero(packed < 0x80) + 1
    lengths = np.diff(ends, prepend=0)
    if lengths.max(initial=0) > 10:
        raise MalformedError("a number of a list of integers does not end")
    values = np.zeros(len(ends), np.uint64)
    begins = ends - lengths
    for step in range(int(lengths.max(initial=0))):
        longer = lengths > step
        bits = packed[begins[longer] + step].astype(np.uint64) & np.uint64(0x7F)
        values[longer] |= bits << np.uint64(7 * step)
    return values.view(np.int64)


def bytes_of(data: bytes, feature: Feature) -> list[bytes]:
    """Return the values of a feature of bytes."""
    return [data[low:high] for low, high in feature.spans]


VALUES: dict[int, Callable[[bytes, Feature], Any]] = {BYTES: bytes_of, FLOAT: floats_of, INT64: integers_of}
"""What reads the values of each kind."""


def encode_example(features: Mapping[str, Sequence[bytes] | npt.NDArray[np.float32] | npt.NDArray[np.int64]]) -> bytes:
    """Return an Example with these features, sorted by name.

    Args:
        features: Arrays of float32 or int64, or lists of bytes.
    """
    entries = []
    for name in sorted(features):
        values = features[name]
        if isinstance(values, np.ndarray):
            packed = values.astype("<f4").tobytes() if values.dtype.kind == "f" else packed_integers(values)
            kind = FLOAT if values.dtype.kind == "f" else INT64
            body = sized(b"\x0a", packed) if len(values) else b""
        else:
            kind, body = BYTES, b"".join([sized(b"\x0a", value) for value in values])
        feature = sized(bytes([kind << 3 | _LENGTH]), body)
        entries.append(sized(b"\x0a", sized(b"\x0a", name.encode()) + sized(b"\x12", feature)))
    return sized(b"\x0a", b"".join(entries))


def packed_integers(values: npt.NDArray[Any]) -> bytes:
    """Return integers as varints; negative ones take ten bytes."""
    if len(values) == 1:
        return _as_varint(int(values[0]) & 0xFFFFFFFFFFFFFFFF)
    numbers = values.view(np.uint64)
    pieces = (numbers[:, None] >> (np.arange(10, dtype=np.uint64) * np.uint64(7))).astype(np.uint8) & 0x7F
    used = np.maximum(1, 10 - np.argmax(pieces[:, ::-1] != 0, axis=1))
    used[~pieces.any(axis=1)] = 1
    places = np.arange(10)
    pieces[places < used[:, None] - 1] |= 0x80
    return bytes(pieces[places < used[:, None]].tobytes())


def sized(tag: bytes, body: bytes) -> bytes:
    """Return a field of a message: its tag, its length, its content."""
    return tag + _as_varint(len(body)) + body


def _as_varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
