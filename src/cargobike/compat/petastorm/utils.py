"""Rows, one by one, decoded by their schema."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from cargobike.compat.petastorm.errors import DecodeFieldError
from cargobike.compat.petastorm.unischema import Unischema

__all__ = ["DecodeFieldError", "decode_row"]


def decode_row(row: Mapping[str, Any], schema: Unischema) -> dict[str, Any]:
    """Return the values of a row, each decoded by the codec of its field; what the schema lacks is left out.

    Raises:
        DecodeFieldError: If a value cannot be decoded.
    """
    return {name: _decoded(value, schema.fields[name]) for name, value in row.items() if name in schema.fields}


def _decoded(value: Any, field: Any) -> Any:
    if value is None:
        return None
    try:
        if field.codec is not None:
            return field.codec.decode(field, bytes(value) if isinstance(value, bytearray) else value)
        if isinstance(field.numpy_dtype, type) and issubclass(field.numpy_dtype, np.generic | Decimal):
            return field.numpy_dtype(value)
    except Exception as error:
        raise DecodeFieldError(f"Decoding field {field.name!r} failed: {error}") from error
    return value
