"""Columns to rows and back: the Open Inference Protocol has one tensor for each field, a model has rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from cargobike.core.errors import nearest
from cargobike.core.signatures import Datatype, Field
from cargobike.serving.front.desk.problems import Problem, Refused


class Tensor(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A named tensor; its data may be flat or nested."""

    name: str
    shape: list[int]
    datatype: Datatype
    data: list[Any] = []
    parameters: dict[str, Any] = {}


def rows_of(tensors: Sequence[Tensor], fields: Sequence[Field], keys: Sequence[str] = ()) -> list[Any]:
    """Return the rows that tensors hold: bare values for one field, dicts for several.

    Args:
        tensors: One for each field, each with the number of rows first in its shape.
        fields: What a row has; nothing if any tensors may be sent.
        keys: What rows must have where features are looked up: they have names, also a single one.
    """
    _check_names(tensors, fields)
    by_name = {field.name: field for field in fields}
    columns: dict[str, list[Any]] = {}
    for tensor in tensors:
        columns[tensor.name] = _column(tensor, by_name.get(tensor.name))
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        sizes = ", ".join(f"{name!r} has {len(column)}" for name, column in columns.items())
        raise _wrong(f"all inputs need the same number of rows; {sizes}")
    if len(fields) == 1 or (not fields and not keys and len(columns) == 1):
        return next(iter(columns.values()))
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _check_names(tensors: Sequence[Tensor], fields: Sequence[Field]) -> None:
    if not tensors:
        raise _wrong("no inputs were sent; at least one is needed")
    names = [field.name for field in fields]
    sent = [tensor.name for tensor in tensors]
    if len(set(sent)) < len(sent):
        raise _wrong(f"inputs {', '.join(sent)} were sent; each may be there once")
    if not fields:
        return
    unknown = [f"there is no input {name!r}.{nearest(name, names)}" for name in sent if name not in names]
    missing = [f"input {field.name!r} is missing" for field in fields if not field.nullable and field.name not in sent]
    if unknown or missing:
        raise _wrong("; ".join([*unknown, *missing]))


def _column(tensor: Tensor, field: Field | None) -> list[Any]:
    if field is not None and tensor.datatype != field.datatype and not _widens(tensor.datatype, field.datatype):
        raise _wrong(f"input {tensor.name!r} has datatype {tensor.datatype}; {field.datatype} is needed")
    if not tensor.shape or any(length < 0 for length in tensor.shape):
        raise _wrong(f"input {tensor.name!r} has shape {tensor.shape}; the number of rows must come first")
    count, inner = tensor.shape[0], tuple(tensor.shape[1:])
    if field is not None and not _fits(inner, field.shape):
        wanted = ", ".join(["rows", *("any" if length < 0 else str(length) for length in field.shape)])
        raise _wrong(f"input {tensor.name!r} has shape {tensor.shape}; [{wanted}] is needed")
    flat = list(_flattened(tensor.data))
    if len(flat) != math.prod(tensor.shape):
        raise _wrong(f"input {tensor.name!r} has {len(flat)} elements; its shape {tensor.shape} says otherwise")
    if not inner or (inner == (1,) and field is not None and not field.shape):
        return flat
    size = math.prod(inner)
    return [_nested(flat[start : start + size], inner) for start in range(0, count * size, size or 1)]


def _fits(inner: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    if not shape and inner == (1,):
        return True  # many clients send one column as [rows, 1]
    return len(inner) == len(shape) and all(want in (-1, have) for have, want in zip(inner, shape, strict=True))


def _widens(given: Datatype, wanted: Datatype) -> bool:
    """Tell whether values of one type can be read as another: all numbers travel as JSON, and are checked again."""
    return (
        "BYTES" not in (given, wanted)
        and "BOOL" not in (given, wanted)
        and (wanted.startswith("FP") or given[0] != "F")
    )


def _flattened(data: Sequence[Any]) -> Iterator[Any]:
    for value in data:
        if isinstance(value, list):
            yield from _flattened(value)
        else:
            yield value


def _nested(flat: list[Any], shape: tuple[int, ...]) -> list[Any]:
    if len(shape) <= 1:
        return flat
    size = math.prod(shape[1:])
    return [_nested(flat[start : start + size], shape[1:]) for start in range(0, len(flat), size or 1)]


def tensors_of(answers: Sequence[Any], fields: Sequence[Field]) -> list[Tensor]:
    """Return one tensor for each field of answers; without known fields, their types are seen from the answers."""
    if fields and len(fields) > 1:
        return [_tensor(field.name, [answer.get(field.name) for answer in answers], field) for field in fields]
    if fields:
        return [_tensor(fields[0].name, answers, fields[0])]
    if answers and all(isinstance(answer, dict) for answer in answers):
        names = dict.fromkeys(name for answer in answers for name in answer)
        return [_tensor(str(name), [answer.get(name) for answer in answers], None) for name in names]
    return [_tensor("output", answers, None)]


def _tensor(name: str, column: Sequence[Any], field: Field | None) -> Tensor:
    shape = [len(column)]
    inner: Any = column[0] if column else None
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    flat = list(_flattened(column)) if len(shape) > 1 else list(column)
    if len(flat) != math.prod(shape):
        return Tensor(name=name, shape=[len(column)], datatype="BYTES", data=[_text(value) for value in column])
    return Tensor(name=name, shape=shape, datatype=field.datatype if field is not None else _datatype(flat), data=flat)


def _datatype(flat: Sequence[Any]) -> Datatype:
    if all(isinstance(value, bool) for value in flat):
        return "BOOL"
    if all(isinstance(value, int) and not isinstance(value, bool) for value in flat):
        return "INT64"
    if all(isinstance(value, (int, float)) for value in flat):
        return "FP64"
    return "BYTES"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _wrong(message: str) -> Refused:
    return Refused(Problem(422, "wrong-input", message, mistakes=(message,)))
