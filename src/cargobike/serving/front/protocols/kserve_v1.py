"""The first protocol of KServe, which TensorFlow Serving speaks too: `instances` in, `predictions` out."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cargobike.serving.front.protocols.rows import Asked, RowCodec

_encoder: Final = msgspec.json.Encoder()


class _Predictions(msgspec.Struct):
    predictions: list[Any]


def read(body: bytes, codec: RowCodec) -> Asked:
    """Read the body of `POST /v1/models/{name}:predict`."""
    return Asked(codec.read_instances(body), _reply)


def _reply(answers: list[Any], _: int) -> bytes:
    return _encoder.encode(_Predictions(answers))
