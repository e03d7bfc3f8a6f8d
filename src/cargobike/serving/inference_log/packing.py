"""Requests on their way from a front to the process of its log: packed one after the other, without an object each.

A front that kept rows until there are many would pay for it twice: their objects are many, and are gone from the
processor's cache when they are looked at again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cargobike.serving.inference_log.messages import Requests

FIGURES: Final = 4
"""How many numbers a request has: when it came, how long it took, its status, how many rows it has."""
SEPARATOR: Final = b"\n"
"""Stands between ids, which have no blanks."""

_encode_into: Final = msgspec.msgpack.Encoder(enc_hook=str).encode_into
_figures: Final = struct.Struct("=4d").pack
_NOTHING: Final = (None,)


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
