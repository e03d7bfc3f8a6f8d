"""Announced columns, such as `label int, score double`, as Arrow types: the words of Spark, without Spark."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.casting import UNNAMED

_TYPES: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def announced(output: str) -> pa.Schema:
    """Return the columns that were announced, as names and types or as the type of the only one.

    Example:
        >>> announced("label int, scores array<double>").names
        ['label', 'scores']
        >>> announced("double").names
        ['prediction']
    """
    fields: list[pa.Field] = []
    mistakes: list[str] = []
    for part in _split(output):
        words = re.split(r"[\s:]+", part.strip(), maxsplit=1)
        name, text = (UNNAMED, words[0]) if len(words) == 1 else (words[0], words[1])
        kind = _type(text.strip().lower())
        if kind is None:
            mistakes.append(f"{text.strip()!r} is no type.{nearest(text.strip(), _TYPES)}")
        else:
            fields.append(pa.field(name, kind))
    if mistakes or not fields:
        raise InvalidInputError(
            f"output={output!r} was given; it says names and types, such as 'label int, score double'. Types are "
            f"{', '.join(_TYPES)}, decimal(p,s) and array<…>.",
            mistakes,
        )
    return pa.schema(fields)


def _split(output: str) -> list[str]:
    """Cut at commas that stand in no brackets."""
    parts, depth = [""], 0
    for mark in output:
        depth += (mark in "<(") - (mark in ">)")
        if mark == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    return [part for part in parts if part.strip()]


def _type(text: str) -> pa.DataType | None:
    if array := re.fullmatch(r"array\s*<(.+)>", text):
        inner = _type(array[1].strip())
        return None if inner is None else pa.list_(inner)
    if decimal := re.fullmatch(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", text):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _TYPES.get(text)
