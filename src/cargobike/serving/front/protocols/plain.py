"""Plain rows: a row in, an answer out; a list of rows in, a list of answers out."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cargobike.serving.front.protocols.rows import Asked, RowCodec

_encoder: Final = msgspec.json.Encoder()


def read(body: bytes, codec: RowCodec) -> Asked:
    """Read the body of `POST /predict`."""
    rows, is_single = codec.read_rows(body)
    return Asked(rows, _one if is_single else _many)


def _one(answers: list[Any], _: int) -> bytes:
    return _encoder.encode(answers[0])


def _many(answers: list[Any], _: int) -> bytes:
    return _encoder.encode(answers)
