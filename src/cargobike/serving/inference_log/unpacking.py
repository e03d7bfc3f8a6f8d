"""Packed requests as arrays of numbers, without an object for each number where all rows have one layout."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from cargobike.core.signatures import Field
from cargobike.serving.inference_log.messages import Requests
from cargobike.serving.inference_log.packing import FIGURES, SEPARATOR
from cargobike.serving.inference_log.sink import Entry

_FLOATS: Final = ("FP16", "FP32", "FP64")
_MOST_ELEMENTS: Final = 1 << 14
_UNLIKE_ZERO: Final[float] = struct.unpack(">d", b"A" * 8)[0]
"""A number that differs from 0.0 in each of its bytes."""


class Figures(NamedTuple):
    """What requests have besides rows and answers.

    Attributes:
        ids: Their ids.
        ats: When they came, in seconds since 1970.
        latencies: How long they took, in seconds.
        statuses: Of their answers.
        counts: How many rows each has; 0 if it has none.
    """

    ids: pa.Array
    ats: np.ndarray[Any, Any]
    latencies: np.ndarray[Any, Any]
    statuses: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]


def figures_of(requests: Requests) -> Figures:
    """Return the figures of packed requests."""
    matrix = np.frombuffer(requests.figures, np.float64).reshape(requests.count, FIGURES)
    ats, latencies, statuses, counts = (matrix[:, number] for number in range(FIGURES))
    return Figures(_ids_of(requests), ats, latencies, statuses.astype(np.int16), counts.astype(np.int64))


def _ids_of(requests: Requests) -> pa.Array:
    text = np.frombuffer(requests.ids, np.uint8)
    is_between = text == ord(SEPARATOR)
    ends = np.flatnonzero(is_between) - np.arange(requests.count - 1)
    offsets = np.concatenate([[0], ends, [len(text) - requests.count + 1]]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text[~is_between])]
    return pa.Array.from_buffers(pa.string(), requests.count, buffers)


def values_of(packed: bytes, count: int) -> list[Any]:
    """Return packed rows or answers as plain values."""
    values: list[Any] = msgspec.msgpack.decode(b"\xdd" + count.to_bytes(4, "big") + packed)
    return values


def entries_of(requests: Requests) -> list[Entry]:
    """Return packed requests one by one."""
    figures = figures_of(requests)
    repeats = np.maximum(figures.counts, 1)
    rows = values_of(requests.rows, int(repeats.sum()))
    answers = values_of(requests.answers, len(rows))
    entries: list[Entry] = []
    start = 0
    for request_id, at, latency, status, count, more in zip(
        figures.ids.to_pylist(),
        figures.ats.tolist(),
        figures.latencies.tolist(),
        figures.statuses.tolist(),
        figures.counts.tolist(),
        repeats.tolist(),
        strict=True,
    ):
        some = answers[start : start + more]
        has_answers = status == 200 or any(answer is not None for answer in some)
        asked = rows[start : start + count] if count else None
        entries.append((request_id, at, latency, requests.version, status, asked, some if has_answers else None))
        start += more
    return entries


class Layout:
    """Where the numbers of a row lie in its bytes: every float takes nine, so all rows of floats look alike.

    Args:
        fields: Of a row or an answer; all of floats, and of shapes that are known.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        zeros = np.frombuffer(_packed(fields, 0.0), np.uint8)
        is_number = zeros != np.frombuffer(_packed(fields, _UNLIKE_ZERO), np.uint8)
        self._length = len(zeros)
        self._marks = np.flatnonzero(~is_number)
        self._marked = zeros[self._marks]
        self._numbers = np.flatnonzero(is_number)
        ends = np.cumsum([math.prod(field.shape) for field in fields])
        self._splits = ends[:-1]

    @classmethod
    def of(cls, fields: Sequence[Field]) -> Layout | None:
        """Return the layout of rows with these fields; `None` if rows may differ in length."""
        fits = fields and all(field.datatype in _FLOATS and min(field.shape, default=1) > 0 for field in fields)
        if not fits or sum(math.prod(field.shape) for field in fields) > _MOST_ELEMENTS:
            return None
        return cls(fields)

    def read(self, packed: bytes, count: int) -> list[np.ndarray[Any, Any]] | None:
        """Return the elements of each field, one row for each row; `None` if not all rows look as they should."""
        if len(packed) != count * self._length:
            return None
        rows = np.frombuffer(packed, np.uint8).reshape(count, self._length)
        if not np.array_equal(rows[:, self._marks], np.broadcast_to(self._marked, (count, len(self._marked)))):
            return None
        numbers = np.take(rows, self._numbers, axis=1).view(">f8")
        return np.split(numbers, self._splits, axis=1)


def _packed(fields: Sequence[Field], value: float) -> bytes:
    """Return a row that has one number everywhere, as it travels."""

    def filled(shape: Sequence[int]) -> Any:
        return [filled(shape[1:])] * shape[0] if shape else value

    if len(fields) == 1:
        return msgspec.msgpack.encode(filled(fields[0].shape))
    return msgspec.msgpack.encode({field.name: filled(field.shape) for field in fields})
