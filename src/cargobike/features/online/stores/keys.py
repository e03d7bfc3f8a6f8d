"""Keys of groups as stores have them: a whole number, a text, or several values packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from cargobike.core.errors import InvalidInputError


def is_number(kinds: Sequence[str]) -> bool:
    """Tell whether keys are single integers, which stores find quickest."""
    return len(kinds) == 1 and kinds[0] in {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"}


def is_text(kinds: Sequence[str]) -> bool:
    """Tell whether keys are single texts."""
    return len(kinds) == 1 and kinds[0] in {"string", "large_string", "string_view"}


def pack_keys(table: pa.Table, names: Sequence[str]) -> list[Any]:
    """Return the keys of rows as a store has them."""
    kinds = [str(table.schema.field(name).type) for name in names]
    columns: list[list[Any]] = [table[name].to_pylist() for name in names]
    if is_number(kinds) or is_text(kinds):
        return columns[0]
    return [msgspec.msgpack.encode(values) for values in zip(*columns, strict=True)]


def pack_key(values: Sequence[Any], names: Sequence[str], kinds: Sequence[str]) -> Any:
    """Return one key as a store has it.

    Raises:
        InvalidInputError: If a value is of another type than the group's.
    """
    if is_number(kinds):
        try:
            return values[0].__index__()
        except AttributeError:
            raise InvalidInputError(f"{names[0]}={values[0]!r} was given; it is a whole number ({kinds[0]}).") from None
    if is_text(kinds):
        if not isinstance(values[0], str):
            raise InvalidInputError(f"{names[0]}={values[0]!r} was given; it is text.")
        return values[0]
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    return msgspec.msgpack.encode(tuple(plain))
