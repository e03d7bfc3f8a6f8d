"""Signatures and examples, in MLflow's words and in ours."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cargobike.core.signatures import NUMPY_NAMES, Datatype, Field, Signature

_COLUMNS: Final[dict[Datatype, str]] = {
    "BOOL": "boolean",
    "UINT8": "integer",
    "UINT16": "integer",
    "UINT32": "long",
    "UINT64": "long",
    "INT8": "integer",
    "INT16": "integer",
    "INT32": "integer",
    "INT64": "long",
    "FP16": "float",
    "FP32": "float",
    "FP64": "double",
    "BYTES": "string",
}
_OF_COLUMNS: Final[dict[str, Datatype]] = {
    "boolean": "BOOL",
    "integer": "INT32",
    "long": "INT64",
    "float": "FP32",
    "double": "FP64",
    "string": "BYTES",
}
_OF_NUMPY: Final[dict[str, Datatype]] = {
    **{name: datatype for datatype, name in NUMPY_NAMES.items()},
    "str": "BYTES",
}


def to_mlflow(signature: Signature) -> dict[str, Any]:
    """Return a signature as it stands in an `MLmodel` file: tensors, or columns where all fields are single values."""
    outputs = _specs(signature.outputs) if signature.outputs else None
    return {
        "inputs": json.dumps(_specs(signature.inputs)),
        "outputs": None if outputs is None else json.dumps(outputs),
        "params": None,
    }


def from_mlflow(document: object) -> Signature | None:
    """Return a signature that an `MLmodel` file holds; `None` if it holds none, or one that rows cannot have."""
    if not isinstance(document, Mapping) or not document.get("inputs"):
        return None
    inputs = _fields(document["inputs"], "input")
    outputs = _fields(document.get("outputs"), "output")
    return None if inputs is None else Signature(inputs, outputs or ())


def example_to_mlflow(example: Sequence[Any]) -> tuple[dict[str, Any], str]:
    """Return what the `MLmodel` file says of an example, and the content of its file."""
    if isinstance(example[0], Mapping):
        names = list(example[0])
        content = {"columns": names, "data": [[row.get(name) for name in names] for row in example]}
        return {"artifact_path": _EXAMPLE, "type": "dataframe", "pandas_orient": "split"}, json.dumps(content)
    return {"artifact_path": _EXAMPLE, "type": "ndarray"}, json.dumps(list(example))


_EXAMPLE: Final = "input_example.json"


def example_from_mlflow(about: object, content: object) -> list[Any] | None:
    """Return the rows of an example; `None` if it is none that rows can have."""
    kind = about.get("type") if isinstance(about, Mapping) else None
    if kind == "ndarray" and isinstance(content, Mapping):  # as older versions write it
        content = content.get("inputs")
    if kind == "dataframe" and isinstance(content, Mapping) and isinstance(content.get("data"), list):
        rows, names = content["data"], content.get("columns")
        if names is None or len(names) == 1:
            return [row[0] if len(row) == 1 else row for row in rows] or None
        return [dict(zip(map(str, names), row, strict=False)) for row in rows] or None
    return content if isinstance(content, list) and content else None


def _specs(fields: Sequence[Field]) -> list[dict[str, Any]]:
    as_columns = all(not field.shape for field in fields) and (
        len(fields) > 1 or any(field.datatype == "BYTES" or field.nullable for field in fields)
    )
    named = len(fields) > 1
    return [_column(field, named) if as_columns else _tensor(field, named) for field in fields]


def _column(field: Field, named: bool) -> dict[str, Any]:
    spec = {"type": _COLUMNS[field.datatype], "required": not field.nullable}
    return {**spec, "name": field.name} if named else spec


def _tensor(field: Field, named: bool) -> dict[str, Any]:
    kind = NUMPY_NAMES[field.datatype]
    spec = {"type": "tensor", "tensor-spec": {"dtype": kind, "shape": [-1, *field.shape]}}
    return {**spec, "name": field.name} if named else spec


def _fields(document: object, only: str) -> tuple[Field, ...] | None:
    try:
        specs = json.loads(document) if isinstance(document, str) else None
    except ValueError:
        return None
    if not isinstance(specs, list) or not specs:
        return None
    fields = [_field(spec, only if len(specs) == 1 else f"{only}_{number}") for number, spec in enumerate(specs)]
    present = tuple(field for field in fields if field is not None)
    return present if len(present) == len(specs) and len({field.name for field in present}) == len(specs) else None


def _field(spec: object, default: str) -> Field | None:
    if not isinstance(spec, Mapping):
        return None
    name = str(spec.get("name") or default)
    shape: list[Any] = []
    kind, element = spec.get("type"), spec
    while kind == "array" and isinstance(element.get("items"), Mapping):
        element = element["items"]
        kind = element.get("type")
        shape.append(-1)
    if kind == "tensor" and isinstance(tensor := spec.get("tensor-spec"), Mapping):
        datatype = _OF_NUMPY.get(str(tensor.get("dtype")))
        sizes = tensor.get("shape")
        shape = list(sizes[1:]) if isinstance(sizes, list) else []
    else:
        datatype = _OF_COLUMNS.get(str(kind))
    if datatype is None or not all(isinstance(size, int) and -1 <= size < math.inf for size in shape):
        return None
    return Field(name, datatype, tuple(shape), spec.get("required") is False)
