"""Tensors in messages to rows, and answers to tensors in messages: typed contents, or raw bytes."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec
import numpy as np

from cargobike.core.errors import nearest
from cargobike.core.signatures import NUMPY_NAMES, Datatype
from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.front.protocols.rows import Asked, RowCodec
from cargobike.serving.front.protocols.tensors import Tensor, rows_of, tensors_of
from cargobike.serving.front.rpc.messages import ModelInferResponse

CONTENTS: Final[dict[Datatype, str]] = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Where the elements of a type are; those of FP16 have no place and travel as raw bytes only."""

_LENGTH: Final = struct.Struct("<I")


def read(message: Any, codec: RowCodec, name: str) -> Asked:
    """Return the rows of a `ModelInferRequest`, checked, and how their answers become a `ModelInferResponse`."""
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        sent = f"{len(message.inputs)} inputs and {len(raw)} raw_input_contents were sent"
        raise _wrong(f"{sent}; one for each input is needed")
    tensors = [_tensor(given, raw[place] if raw else None) for place, given in enumerate(message.inputs)]
    rows = codec.convert(rows_of(tensors, codec.inputs, codec.keys))
    return Asked(rows, functools.partial(_reply, name=name, message=message, codec=codec))


def _tensor(given: Any, raw: bytes | None) -> Tensor:
    known = get_args(Datatype)
    if given.datatype not in known:
        given_type = given.datatype[:40]
        raise _wrong(
            f"input {given.name!r} has datatype {given_type!r}; there is {', '.join(known)}."
            f"{nearest(given_type, known)}"
        )
    tensor = Tensor(name=given.name, shape=list(given.shape), datatype=given.datatype)
    tensor.data = _contents(given, tensor) if raw is None else _from_raw(given, tensor, raw)
    if tensor.datatype.startswith("FP") and not all(map(math.isfinite, tensor.data)):
        place = next(place for place, value in enumerate(tensor.data) if not math.isfinite(value))
        value = tensor.data[place]
        raise _wrong(f"{_where(tensor, place)}: {value} was given; numbers must be finite", "wrong-row")
    return tensor


def _contents(given: Any, tensor: Tensor) -> list[Any]:
    field = CONTENTS.get(tensor.datatype)
    if field is None:
        raise _wrong(f"input {tensor.name!r} has datatype {tensor.datatype}; it needs raw_input_contents")
    filled = [descriptor.name for descriptor, _ in given.contents.ListFields()]
    if filled not in ([], [field]):
        raise _wrong(f"input {tensor.name!r} has datatype {tensor.datatype} and {', '.join(filled)}; it needs {field}")
    values = list(getattr(given.contents, field))
    return _texts(tensor, values) if tensor.datatype == "BYTES" else values


def _from_raw(given: Any, tensor: Tensor, raw: bytes) -> list[Any]:
    if given.HasField("contents"):
        raise _wrong(f"input {tensor.name!r} has contents beside raw_input_contents; send one of them")
    if tensor.datatype == "BYTES":
        return _texts(tensor, _split(tensor, raw))
    kind = _raw_type(tensor.datatype)
    if len(raw) % kind.itemsize:
        raise _wrong(
            f"input {tensor.name!r} has {len(raw)} raw bytes; {tensor.datatype} takes {kind.itemsize} for each element"
        )
    values = np.frombuffer(raw, kind)
    flat: list[Any] = (values != 0).tolist() if tensor.datatype == "BOOL" else values.tolist()
    return flat


def _raw_type(datatype: Datatype) -> np.dtype[Any]:
    return np.dtype("uint8" if datatype == "BOOL" else NUMPY_NAMES[datatype]).newbyteorder("<")


def _split(tensor: Tensor, raw: bytes) -> list[bytes]:
    """Return elements that each come after their length in four bytes."""
    elements: list[bytes] = []
    start = 0
    while start < len(raw):
        stop = start + 4
        if stop <= len(raw):
            stop += _LENGTH.unpack_from(raw, start)[0]
        if stop > len(raw) or stop < start + 4:
            raise _wrong(f"{_where(tensor, len(elements))}: the raw bytes end within it")
        elements.append(raw[start + 4 : stop])
        start = stop
    return elements


def _texts(tensor: Tensor, values: Sequence[bytes]) -> list[str]:
    texts: list[str] = []
    for place, value in enumerate(values):
        try:
            texts.append(value.decode())
        except UnicodeDecodeError as error:
            raise _wrong(f"{_where(tensor, place)}: a text in UTF-8 is needed ({error})", "wrong-row") from None
    return texts


def _where(tensor: Tensor, place: int) -> str:
    return f"row {place // max(1, math.prod(tensor.shape[1:]))}, field {tensor.name!r}"


def _wrong(message: str, kind: str = "wrong-input") -> Refused:
    return Refused(Problem(422, kind, message, mistakes=(message,)))


# --- answers ----------------------------------------------------------------------------------------------------------


def _reply(answers: list[Any], version: int, *, name: str, message: Any, codec: RowCodec) -> bytes:
    tensors = tensors_of(answers, codec.outputs)
    if message.outputs:
        wanted = {output.name for output in message.outputs}
        tensors = [tensor for tensor in tensors if tensor.name in wanted]
    reply = ModelInferResponse(model_name=name, model_version=str(version), id=message.id)
    is_raw = bool(message.raw_input_contents) or any(tensor.datatype not in CONTENTS for tensor in tensors)
    for tensor in tensors:
        output = reply.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        try:
            values = _values(tensor)
            if is_raw:
                reply.raw_output_contents.append(_to_raw(tensor.datatype, values))
            else:
                getattr(output.contents, CONTENTS[tensor.datatype]).extend(values)
        except (TypeError, ValueError, OverflowError) as error:
            words = f"The answer {tensor.name!r} cannot be sent as {tensor.datatype}: {error}. Ask over HTTP."
            raise Refused(Problem(500, "wrong-answer", words)) from None
    serialized: bytes = reply.SerializeToString()
    return serialized


def _values(tensor: Tensor) -> list[Any]:
    if tensor.datatype == "BYTES":
        return [_bytes(value) for value in tensor.data]
    if tensor.datatype.startswith("FP"):
        return [math.nan if value is None else value for value in tensor.data]
    if None in tensor.data:
        raise ValueError("a value is missing, and only floating-point numbers have a word for that")
    return tensor.data


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _to_raw(datatype: Datatype, values: list[Any]) -> bytes:
    if datatype == "BYTES":
        return b"".join(part for value in values for part in (_LENGTH.pack(len(value)), value))
    return np.array(values, _raw_type(datatype)).tobytes()
