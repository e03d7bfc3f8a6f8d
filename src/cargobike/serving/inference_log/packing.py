"""Requests on their way from a front to the process of its log: packed one after the other, without an object each.

A front that kept rows until there are many would pay for it twice: their objects are many, and are gone from the
processor's cache when they are looked at again.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cargobike.serving.inference_log.messages import Requests

FIGURES: Final = 4
"""How many numbers a request has: when it came, how long it took, its status, how many rows it has."""
SEPARATOR: Final = b"\n"
"""Stands between ids, which have no blanks."""

_encoder: Final = msgspec.msgpack.Encoder(enc_hook=str)
_encode: Final = _encoder.encode
_encode_into: Final = _encoder.encode_into
_figures: Final = struct.Struct("=4d").pack
_NOTHING: Final = (None,)
_USUAL_FIGURES: Final = array("d", [0.0, 0.0, 200.0, 1.0]).tobytes()


class Packet:
    """Requests of one version that were not handed over yet.

    Attributes:
        count: How many there are.
    """

    __slots__ = ("_answers", "_figures", "_ids", "_rows", "count", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.count = 0
        self._ids: list[bytes] = []
        self._figures = bytearray()
        self._rows = bytearray()
        self._answers = bytearray()

    @property
    def size(self) -> int:
        """How many bytes rows and answers take."""
        return len(self._rows) + len(self._answers)

    def add(  # noqa: PLR0917 - called for every request
        self,
        request_id: bytes,
        at: float,
        latency_s: float,
        status: int,
        rows: Sequence[Any] | None,
        answers: Sequence[Any] | None,
    ) -> None:
        """Pack a request; one that cannot be packed raises, and leaves nothing behind."""
        count = len(rows) if rows else 0
        some = rows or _NOTHING
        if answers is None or len(answers) != len(some):
            answers = _NOTHING * len(some)
        places = (len(self._rows), len(self._answers))
        try:
            for row in some:
                _encode_into(row, self._rows, -1)
            for answer in answers:
                _encode_into(answer, self._answers, -1)
        except BaseException:
            del self._rows[places[0] :]
            del self._answers[places[1] :]
            raise
        self._ids.append(request_id)
        self._figures += _figures(at, latency_s, status, count)
        self.count += 1

    def add_usual(
        self, ids: list[bytes], ats: list[float], latencies: list[float], rows: bytes, answers: list[Any]
    ) -> None:
        """Pack requests of one row that were all answered, at a third of the cost; raises as `add` does.

        Args:
            ids: Their ids.
            ats: When each came.
            latencies: How long each took.
            rows: The list of their rows, as `packed_rows` packs it.
            answers: The answer to each.
        """
        packed = _encode(answers)
        count = len(ids)
        head = 1 if count < 16 else 3 if count < 1 << 16 else 5  # how MessagePack says the length of a list
        figures = array("d", _USUAL_FIGURES * count)
        figures[0::FIGURES] = array("d", ats)
        figures[1::FIGURES] = array("d", latencies)
        self._rows += memoryview(rows)[head:]
        self._answers += memoryview(packed)[head:]
        self._figures += figures.tobytes()
        self._ids += ids
        self.count += count

    def message(self) -> Requests:
        """Return what travels."""
        return Requests(
            self.version,
            self.count,
            SEPARATOR.join(self._ids),
            bytes(self._figures),
            bytes(self._rows),
            bytes(self._answers),
        )


def packed_rows(rows: list[Any]) -> bytes:
    """Return a list of rows as a packet takes it; whatever has no form in MessagePack is kept as text."""
    return _encode(rows)
