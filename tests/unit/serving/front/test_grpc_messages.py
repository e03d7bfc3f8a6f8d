"""Messages of the Open Inference Protocol: what is on the wire, and what becomes of tensors in them."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest

from cargobike.core.signatures import NUMPY_NAMES, Datatype, Field, Signature
from cargobike.serving.front.desk.problems import Refused
from cargobike.serving.front.protocols.rows import RowCodec
from cargobike.serving.front.rpc.messages import ModelInferRequest, ModelInferResponse, message_class
from cargobike.serving.front.rpc.tensors import CONTENTS, read

VALUES: dict[Datatype, list[Any]] = {
    "BOOL": [True, False],
    "INT8": [-128, 127],
    "INT16": [-(2**15), 2**15 - 1],
    "INT32": [-(2**31), 2**31 - 1],
    "INT64": [-(2**63), 2**63 - 1],
    "UINT8": [0, 255],
    "UINT16": [0, 65535],
    "UINT32": [0, 2**32 - 1],
    "UINT64": [0, 2**64 - 1],
    "FP16": [0.5, -2.0],
    "FP32": [0.5, -1e10],
    "FP64": [0.1, -1e300],
    "BYTES": ["", "Kista å"],
}
"""The ends of what each type holds."""


def codec_of(datatype: Datatype, shape: tuple[int, ...] = (), *, nullable: bool = False) -> RowCodec:
    return RowCodec(Signature((Field("x", datatype, shape),), (Field("y", datatype, shape, nullable),)))


def raw_of(datatype: Datatype, values: list[Any]) -> bytes:
    if datatype == "BYTES":
        return b"".join(struct.pack("<I", len(value.encode())) + value.encode() for value in values)
    return np.array(values, np.dtype(NUMPY_NAMES[datatype]).newbyteorder("<")).tobytes()


def typed(datatype: str, shape: list[int], values: list[Any], field: str = "") -> Any:
    message = ModelInferRequest(model_name="m", id="7")
    tensor = message.inputs.add(name="x", datatype=datatype, shape=shape)
    getattr(tensor.contents, field or CONTENTS[datatype]).extend(values)  # type: ignore[index]
    return message


def raw(datatype: str, shape: list[int], *contents: bytes) -> Any:
    message = ModelInferRequest(model_name="m", raw_input_contents=contents)
    message.inputs.add(name="x", datatype=datatype, shape=shape)
    return message


def mistake(message: Any, codec: RowCodec) -> str:
    with pytest.raises(Refused) as caught:
        read(message, codec, "m")
    assert caught.value.problem.status == 422
    return caught.value.problem.message


def test_fields_have_the_numbers_of_the_published_protocol() -> None:
    """Bytes as they are written by hand: each field as its number * 8 + kind, and a length where there is one."""
    contents = b"\x0a\x01\x01" + b"\x12\x01\x02" + b"\x1a\x01\x03" + b"\x22\x01\x04" + b"\x2a\x01\x05"
    contents += b"\x32\x04" + struct.pack("<f", 6) + b"\x3a\x08" + struct.pack("<d", 7) + b"\x42\x01" + b"8"
    parameter = b"\x22\x07" + b"\x0a\x01k" + b"\x12\x02" + b"\x10\x2a"  # a map: key 1, value 2, int64_param 2
    tensor = b"\x0a\x01x" + b"\x12\x05INT64" + b"\x1a\x01\x03" + parameter
    tensor += b"\x2a" + bytes([len(contents)]) + contents
    asked = b"\x0a\x01m" + b"\x12\x012" + b"\x1a\x017" + parameter
    asked += b"\x2a" + bytes([len(tensor)]) + tensor + b"\x32\x03\x0a\x01y" + b"\x3a\x02ab"
    message = ModelInferRequest.FromString(asked)
    assert (message.model_name, message.model_version, message.id) == ("m", "2", "7")
    assert message.parameters["k"].int64_param == message.inputs[0].parameters["k"].int64_param == 42
    found = message.inputs[0].contents
    assert [list(getattr(found, field)) for field in dict.fromkeys(CONTENTS.values())] == [
        [True], [2], [3], [4], [5], [6.0], [7.0], [b"8"],
    ]  # fmt: skip
    assert (message.outputs[0].name, message.raw_input_contents[0]) == ("y", b"ab")

    output = b"\x0a\x01y" + b"\x12\x04BOOL" + b"\x1a\x01\x01"
    replied = b"\x0a\x01m" + b"\x12\x012" + b"\x1a\x017" + b"\x2a" + bytes([len(output)]) + output + b"\x32\x01\x01"
    reply = ModelInferResponse.FromString(replied)
    assert (reply.model_version, reply.outputs[0].datatype, reply.raw_output_contents[0]) == ("2", "BOOL", b"\x01")
    metadata = b"\x0a\x01m" + b"\x12\x012" + b"\x1a\x01p" + b"\x22\x03\x0a\x01x" + b"\x2a\x03\x0a\x01y"
    described = message_class("ModelMetadataResponse").FromString(metadata)
    assert (described.versions[0], described.platform, described.inputs[0].name) == ("2", "p", "x")
    assert described.outputs[0].name == "y"


@pytest.mark.parametrize("datatype", VALUES)
def test_every_type_travels_as_raw_bytes(datatype: Datatype) -> None:
    values = VALUES[datatype]
    asked = read(raw(datatype, [2], raw_of(datatype, values)), codec_of(datatype), "m")
    assert asked.rows == values
    reply = ModelInferResponse.FromString(asked.reply(values, 3))
    assert (reply.model_name, reply.model_version, list(reply.outputs[0].shape)) == ("m", "3", [2])
    assert not reply.outputs[0].HasField("contents")
    assert list(reply.raw_output_contents) == [raw_of(datatype, values)]


@pytest.mark.parametrize("datatype", CONTENTS)
def test_every_type_but_one_travels_as_contents(datatype: Datatype) -> None:
    values = VALUES[datatype]
    sent = [value.encode() for value in values] if datatype == "BYTES" else values
    asked = read(typed(datatype, [2], sent), codec_of(datatype), "m")
    assert asked.rows == values
    reply = ModelInferResponse.FromString(asked.reply(values, 3))
    assert (reply.id, reply.outputs[0].name, reply.outputs[0].datatype) == ("7", "y", datatype)
    assert list(getattr(reply.outputs[0].contents, CONTENTS[datatype])) == sent
    assert not reply.raw_output_contents


def test_rows_are_nested_as_the_shape_says() -> None:
    asked = read(typed("FP32", [2, 2, 1], [1, 2, 3, 4]), codec_of("FP32", (2, 1)), "m")
    assert asked.rows == [[[1.0], [2.0]], [[3.0], [4.0]]]
    reply = ModelInferResponse.FromString(asked.reply(asked.rows, 1))
    assert list(reply.outputs[0].shape) == [2, 2, 1]


def test_only_the_outputs_that_are_asked_for_are_sent() -> None:
    codec = RowCodec(Signature((Field("x", "INT64"),), (Field("y", "INT64"), Field("z", "INT64"))))
    message = typed("INT64", [1], [1])
    message.outputs.add(name="z")
    reply = ModelInferResponse.FromString(read(message, codec, "m").reply([{"y": 1, "z": 2}], 1))
    assert [(output.name, list(output.contents.int64_contents)) for output in reply.outputs] == [("z", [2])]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (typed("INT64", [3], [1, 2]), r"input 'x' has 2 elements; its shape \[3\] says otherwise"),
        (typed("INT64", [2, 2], [1, 2, 3, 4]), r"input 'x' has shape \[2, 2\]; \[rows\] is needed"),
        (typed("INT64", [-1], [1]), "the number of rows must come first"),
        (typed("INT64", [], [1]), "the number of rows must come first"),
        (typed("INT64", [1 << 40, 1 << 40], [1]), r"\[rows\] is needed"),
        (typed("INT64", [1], [1], "int_contents"), "has datatype INT64 and int_contents; it needs int64_contents"),
        (typed("BF16", [1], [1], "fp32_contents"), "has datatype 'BF16'; there is BOOL, .* Did you mean 'FP16'"),
        (typed("FP16", [1], [1], "fp32_contents"), "has datatype FP16; it needs raw_input_contents"),
        (typed("BYTES", [1], [b"a"]), "has datatype BYTES; INT64 is needed"),
        (raw("INT64", [1], b"1234567"), "input 'x' has 7 raw bytes; INT64 takes 8 for each element"),
        (raw("INT64", [2], bytes(8)), "input 'x' has 1 elements"),
        (raw("INT64", [1], bytes(8), bytes(8)), "1 inputs and 2 raw_input_contents were sent"),
        (ModelInferRequest(model_name="m"), "no inputs were sent"),
    ],
)
def test_what_does_not_fit_is_named(message: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        read(message, codec_of("INT64"), "m")


def test_contents_beside_raw_bytes_are_refused() -> None:
    message = typed("INT64", [1], [1])
    message.raw_input_contents.append(bytes(8))
    assert "has contents beside raw_input_contents" in mistake(message, codec_of("INT64"))


def test_the_row_and_the_field_of_a_wrong_value_are_named() -> None:
    assert mistake(typed("FP64", [2], [1.0, math.nan]), codec_of("FP64")) == (
        "row 1, field 'x': nan was given; numbers must be finite"
    )
    infinite = raw("FP32", [2, 2], raw_of("FP32", [1, 2, 3, math.inf]))
    assert mistake(infinite, codec_of("FP32", (2,))).startswith("row 1, field 'x': inf was given")
    assert mistake(typed("INT64", [2], [1, 300]), codec_of("INT8")).startswith("row 1, field 'x': 300 was given")
    assert mistake(typed("BYTES", [2], [b"a", b"\xff"]), codec_of("BYTES")).startswith(
        "row 1, field 'x': a text in UTF-8 is needed"
    )


@pytest.mark.parametrize("cut", [b"\x01", b"\x05\x00\x00\x00abcd", b"\xff\xff\xff\xffabcd"])
def test_raw_texts_that_end_too_early_are_refused(cut: bytes) -> None:
    whole = struct.pack("<I", 1) + b"a"
    assert mistake(raw("BYTES", [2], whole + cut), codec_of("BYTES")) == (
        "row 1, field 'x': the raw bytes end within it"
    )


def test_missing_values_in_answers_are_not_made_up() -> None:
    asked = read(typed("FP64", [2], [1, 2]), codec_of("FP64", nullable=True), "m")
    reply = ModelInferResponse.FromString(asked.reply([1.0, None], 1))
    assert math.isnan(reply.outputs[0].contents.fp64_contents[1])
    asked = read(typed("INT64", [2], [1, 2]), codec_of("INT64", nullable=True), "m")
    with pytest.raises(Refused, match="'y' cannot be sent as INT64: a value is missing"):
        asked.reply([1, None], 1)


def test_answers_of_any_kind_become_texts() -> None:
    asked = read(typed("INT64", [2], [1, 2]), RowCodec(), "m")
    assert asked.rows == [1, 2]
    reply = ModelInferResponse.FromString(asked.reply(["a", {"b": 1}], 1))
    assert list(reply.outputs[0].contents.bytes_contents) == [b"a", b'{"b":1}']
    with pytest.raises(Refused, match="cannot be sent as INT64"):
        asked.reply([1, 2**70], 1)
