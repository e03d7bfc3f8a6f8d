"""Names and types of columns, as Arrow has them and as Delta writes them."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import pyarrow as pa

TIME: Final = pa.timestamp("us", tz="UTC")

_SIMPLE: Final[dict[str, Any]] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date32[day]": pa.date32(),
    "timestamp[us, tz=UTC]": TIME,
}
"""Types by the names that Arrow gives them."""

_OTHER_NAMES: Final = {
    "int": "int64",
    "integer": "int64",
    "long": "int64",
    "float32": "float",
    "float64": "double",
    "boolean": "bool",
    "str": "string",
    "text": "string",
    "bytes": "binary",
    "date": "date32[day]",
    "date32": "date32[day]",
    "timestamp": "timestamp[us, tz=UTC]",
    "datetime": "timestamp[us, tz=UTC]",
}
"""What people write as well."""

_IN_DELTA: Final = {
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "binary": "binary",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamp",
}
_FROM_DELTA: Final = {delta: arrow for arrow, delta in _IN_DELTA.items()}
_DECIMAL: Final = re.compile(r"decimal(?:128)?\((\d{1,2}), ?(-?\d{1,2})\)")
_LIST: Final = re.compile(r"list<(?:(?:item|element): )?(?P<item>.+?)(?: not null)?>")

TYPE_NAMES: Final = ("int8 … int64", "float", "double", "bool", "string", "binary", "date", "timestamp", "list<float>")


def type_of(text: str) -> Any:
    """Return the Arrow type that a text names; `None` if groups cannot hold such values.

    Example:
        >>> type_of("double"), type_of("list<float>")
        (DataType(double), ListType(list<item: float>))
    """
    name = _OTHER_NAMES.get(text.lower(), text)
    if name in _SIMPLE:
        return _SIMPLE[name]
    if match := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(match[1]), int(match[2])) if 1 <= int(match[1]) <= 38 else None
    if match := _LIST.fullmatch(text):
        item = type_of(match["item"])
        return None if item is None or pa.types.is_list(item) else pa.list_(item)
    return None


def kept_as(kind: Any) -> Any:
    """Return the type as which values of a type are kept; `None` if groups cannot hold them."""
    types = pa.types
    if types.is_dictionary(kind):
        return kept_as(kind.value_type)
    if types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.int64()}[kind.bit_width]
    if types.is_float16(kind):
        return pa.float32()
    if types.is_timestamp(kind):
        return TIME
    if types.is_date(kind):
        return pa.date32()
    if types.is_large_string(kind) or str(kind) == "string_view":
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or str(kind) == "binary_view":
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item = kept_as(kind.value_type)
        return None if item is None or types.is_list(item) else pa.list_(item)
    if types.is_decimal128(kind):
        return kind
    return kind if str(kind) in _SIMPLE else None


def encode_schema(schema: Any) -> str:
    """Return a schema as a Delta log holds it."""
    fields = [{"name": field.name, "type": _in_delta(field.type), "nullable": True, "metadata": {}} for field in schema]
    return msgspec.json.encode({"type": "struct", "fields": fields}).decode()


def _in_delta(kind: Any) -> Any:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _in_delta(kind.value_type), "containsNull": True}
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _IN_DELTA[str(kind)]


def column_names(schema_string: str) -> list[str]:
    """Return the names of the columns in a schema of a log."""
    return [field["name"] for field in msgspec.json.decode(schema_string).get("fields", [])]
