"""The Open Inference Protocol, version 2 (KServe v2), over REST: tensors in, tensors out."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cargobike.core.signatures import Field
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.front.protocols.rows import Asked, RowCodec
from cargobike.serving.front.protocols.tensors import Tensor, rows_of, tensors_of

_encoder: Final = msgspec.json.Encoder()


class _Output(msgspec.Struct):
    name: str
    parameters: dict[str, Any] = {}


class InferRequest(msgspec.Struct):
    """The body of a request."""

    inputs: list[Tensor]
    id: str = ""
    outputs: list[_Output] = []
    parameters: dict[str, Any] = {}


class InferResponse(msgspec.Struct, omit_defaults=True):
    """The body of an answer."""

    model_name: str
    model_version: str
    outputs: list[Tensor]
    id: str = ""


_decoder: Final = msgspec.json.Decoder(InferRequest)


def read(body: bytes, codec: RowCodec, name: str) -> Asked:
    """Read the body of `POST /v2/models/{name}/infer`."""
    try:
        request = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refused(Problem(422, "wrong-body", f"The body is no inference request: {error}.")) from None
    except UNDECODABLE as error:
        raise Refused(Problem(400, "not-json", f"The body is not JSON: {error}.")) from None
    rows = codec.convert(rows_of(request.inputs, codec.inputs, codec.keys))
    return Asked(rows, functools.partial(_reply, name=name, request=request, fields=codec.outputs))


def _reply(answers: list[Any], version: int, *, name: str, request: InferRequest, fields: Sequence[Field]) -> bytes:
    outputs = tensors_of(answers, fields)
    if request.outputs:
        wanted = {output.name for output in request.outputs}
        outputs = [output for output in outputs if output.name in wanted]
    return _encoder.encode(InferResponse(name, str(version), outputs, request.id))


def metadata(name: str, versions: Sequence[int], codec: RowCodec) -> dict[str, Any]:
    """Return what `GET /v2/models/{name}` says."""
    return {
        "name": name,
        "versions": [str(version) for version in versions],
        "platform": "cargobike",
        "inputs": [_described(field) for field in codec.inputs],
        "outputs": [_described(field) for field in codec.outputs],
    }


def _described(field: Field) -> dict[str, Any]:
    return {"name": field.name, "datatype": field.datatype, "shape": [-1, *field.shape]}
