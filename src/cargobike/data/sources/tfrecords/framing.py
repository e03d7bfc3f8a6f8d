"""Finds the records of TFRecord files, and checks their checksums."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cargobike.data.sources.ranges import Forward, Ranges
from cargobike.data.sources.tfrecords.crc32c import crc32c, masked, masked_of

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_LONGEST = 1 << 31
Places = npt.NDArray[np.int64]


class Records(NamedTuple):
    """Whole records side by side in a file."""

    start: int
    end: int
    rows: int
    first: int
    """The number of the first one in its file, from 0."""


class Broken(NamedTuple):
    """From where on a file cannot be read, and why."""

    record: int
    place: int
    why: str


def find_records(ranges: Ranges, target: int) -> Iterator[Records | Broken]:
    """Yield stretches of about `target` bytes of a file, found by its headers; at last where it is broken, if it is."""
    file = Forward(ranges)
    begin = first = rows = 0
    broken = None
    while header := file.take(_HEADER.size):
        place = file.place - len(header)
        broken = _broken_header(header)
        if broken is None:
            length = _HEADER.unpack(header)[0] + 4
            skipped = file.skip(length)
            if skipped < length:
                broken = f"the file ends {length - skipped} bytes before this record does"
        if broken:
            break
        rows += 1
        if file.place - begin >= target:
            yield Records(begin, file.place, rows, first)
            begin, first, rows = file.place, first + rows, 0
    if broken:
        if rows:
            yield Records(begin, place, rows, first)
        yield Broken(first + rows, place, broken)
    elif rows:
        yield Records(begin, file.place, rows, first)


def _broken_header(header: bytes) -> str | None:
    if len(header) < _HEADER.size:
        return "the file ends inside the length of this record"
    length, checksum = _HEADER.unpack(header)
    if masked_of(header[:8]) != checksum:
        return "the checksum of its length is wrong"
    if length > _LONGEST:
        return f"it says that it has {length} bytes, and a tf.train.Example has at most {_LONGEST}"
    return None


def spans_of(data: bytes, rows: int) -> tuple[Places, Places]:
    """Return where the records of a stretch begin, and how long they are.

    Raises:
        ValueError: If they are not there any more.
    """
    starts, lengths = [], []
    place = 0
    unpack = _HEADER.unpack_from
    try:
        for _ in range(rows):
            length = unpack(data, place)[0]
            starts.append(place + 12)
            lengths.append(length)
            place += length + 16
    except struct.error:
        place = -1
    if place != len(data):
        raise ValueError("the records are not where they were")
    return np.array(starts, np.int64), np.array(lengths, np.int64)


def wrong_checksums(data: bytes, starts: Places, lengths: Places) -> list[int]:
    """Return the numbers of the records whose content does not fit its checksum."""
    if not len(starts):
        return []
    places = (starts + lengths)[:, None] + np.arange(4)
    stored = np.ascontiguousarray(np.frombuffer(data, np.uint8)[places]).view("<u4")[:, 0]
    return np.flatnonzero(stored != masked(crc32c(data, starts, lengths))).tolist()


def framed(record: bytes) -> bytes:
    """Return a record as it stands in a file."""
    length = struct.pack("<Q", len(record))
    return b"".join((length, _CHECKSUM.pack(masked_of(length)), record, _CHECKSUM.pack(masked_of(record))))


def first_records(file: Forward, count: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the first records whose checksums are right, until some bytes have been read."""
    for number in range(count):
        header = file.take(_HEADER.size)
        if len(header) < _HEADER.size or _broken_header(header) or file.place > size:
            return
        length = _HEADER.unpack(header)[0]
        record, checksum = file.take(length), file.take(4)
        if len(checksum) == 4 and _CHECKSUM.unpack(checksum)[0] == masked_of(record):
            yield number, record
