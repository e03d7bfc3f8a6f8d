"""The messages of the Open Inference Protocol, made from a table when they are first needed.

They live in a pool of their own: code that was generated for the same protocol by other packages (clients of it, for
example) claims the same names in protobuf's shared pool, and the second to come would fail.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE: Final = "inference"
SERVICE: Final = f"{PACKAGE}.GRPCInferenceService"
METHODS: Final = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")
"""Each takes a message `…Request` and returns a `…Response`."""

_TENSOR: Final = ("string name = 1", "string datatype = 2", "repeated int64 shape = 3")
_PARAMETERS: Final = "map<string, InferParameter> parameters"
_MODEL: Final = ("string name = 1", "string version = 2")

# Names and numbers are those of the published protocol; a name with a dot is a message inside another.
_TABLE: Final[dict[str, tuple[str, ...]]] = {
    "ServerLiveRequest": (),
    "ServerLiveResponse": ("bool live = 1",),
    "ServerReadyRequest": (),
    "ServerReadyResponse": ("bool ready = 1",),
    "ModelReadyRequest": _MODEL,
    "ModelReadyResponse": ("bool ready = 1",),
    "ServerMetadataRequest": (),
    "ServerMetadataResponse": ("string name = 1", "string version = 2", "repeated string extensions = 3"),
    "ModelMetadataRequest": _MODEL,
    "ModelMetadataResponse": (
        "string name = 1",
        "repeated string versions = 2",
        "string platform = 3",
        "repeated ModelMetadataResponse.TensorMetadata inputs = 4",
        "repeated ModelMetadataResponse.TensorMetadata outputs = 5",
    ),
    "ModelMetadataResponse.TensorMetadata": _TENSOR,
    "ModelInferRequest": (
        "string model_name = 1",
        "string model_version = 2",
        "string id = 3",
        f"{_PARAMETERS} = 4",
        "repeated ModelInferRequest.InferInputTensor inputs = 5",
        "repeated ModelInferRequest.InferRequestedOutputTensor outputs = 6",
        "repeated bytes raw_input_contents = 7",
    ),
    "ModelInferRequest.InferInputTensor": (*_TENSOR, f"{_PARAMETERS} = 4", "InferTensorContents contents = 5"),
    "ModelInferRequest.InferRequestedOutputTensor": ("string name = 1", f"{_PARAMETERS} = 2"),
    "ModelInferResponse": (
        "string model_name = 1",
        "string model_version = 2",
        "string id = 3",
        f"{_PARAMETERS} = 4",
        "repeated ModelInferResponse.InferOutputTensor outputs = 5",
        "repeated bytes raw_output_contents = 6",
    ),
    "ModelInferResponse.InferOutputTensor": (*_TENSOR, f"{_PARAMETERS} = 4", "InferTensorContents contents = 5"),
    "InferParameter": (
        "oneof bool bool_param = 1",
        "oneof int64 int64_param = 2",
        "oneof string string_param = 3",
        "oneof double double_param = 4",
        "oneof uint64 uint64_param = 5",
    ),
    "InferTensorContents": (
        "repeated bool bool_contents = 1",
        "repeated int32 int_contents = 2",
        "repeated int64 int64_contents = 3",
        "repeated uint32 uint_contents = 4",
        "repeated uint64 uint64_contents = 5",
        "repeated float fp32_contents = 6",
        "repeated double fp64_contents = 7",
        "repeated bytes bytes_contents = 8",
    ),
}
_CHOICE: Final = "parameter_choice"
_FIELD: Final = re.compile(r"(?:(repeated|oneof) )?(map<string, )?([\w.]+)>? (\w+) = (\d+)")


def _described() -> FileDescriptorProto:
    file = FileDescriptorProto(name="open_inference.proto", package=PACKAGE, syntax="proto3")
    messages: dict[str, Any] = {}
    for name, fields in _TABLE.items():
        outer, _, inner = name.rpartition(".")
        message = messages[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=inner)
        messages[name] = message
        for field in fields:
            _add(message, name, field)
    return file


def _add(message: DescriptorProto, path: str, line: str) -> None:
    """Add the field that a line of the table describes."""
    match = _FIELD.fullmatch(line)
    assert match is not None, line
    how, is_map, kind, name, number = match.groups()
    field = message.field.add(name=name, number=int(number), label=FieldDescriptorProto.LABEL_OPTIONAL)
    if is_map:  # on the wire, a map is a list of pairs
        pair = message.nested_type.add(name=f"{name.capitalize()}Entry")
        pair.options.map_entry = True
        _add(pair, path, "string key = 1")
        _add(pair, path, f"{kind} value = 2")
        how, kind = "repeated", f"{path}.{pair.name}"
    if how == "repeated":
        field.label = FieldDescriptorProto.LABEL_REPEATED
    elif how == "oneof":
        if not message.oneof_decl:
            message.oneof_decl.add(name=_CHOICE)
        field.oneof_index = 0
    if kind[0].isupper():
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")


_pool: Final = DescriptorPool()
_pool.AddSerializedFile(_described().SerializeToString())


@functools.cache
def message_class(name: str) -> Any:
    r"""Return the class of a message.

    Example:
        >>> message_class("ServerLiveResponse")(live=True).SerializeToString()
        b'\x08\x01'
    """
    return GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


ModelInferRequest: Final = message_class("ModelInferRequest")
ModelInferResponse: Final = message_class("ModelInferResponse")
