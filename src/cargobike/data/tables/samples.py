"""The first rows of a table for people: values as short texts, tensors and bytes as what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cargobike.data.tables.rows.types import type_text
from cargobike.data.tensors import tensor_of

_LONGEST = 60
_MOST_VALUES = 64


def as_texts(rows: pa.Table) -> list[list[str]]:
    """Return rows as texts, in the order of the columns."""
    columns = [[_text(value, field) for value in rows.column(field.name).to_pylist()] for field in rows.schema]
    return [list(row) for row in zip(*columns, strict=True)]


def as_plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as plain data for programs; small tensors are lists, larger ones are said."""
    columns = {
        field.name: [_plain(value, field) for value in rows.column(field.name).to_pylist()] for field in rows.schema
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _text(value: Any, field: pa.Field) -> str:
    if value is None:
        return "–"
    if tensor_of(field) is not None:
        return type_text(field)
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _plain(value: Any, field: pa.Field) -> Any:
    tensor = tensor_of(field)
    if value is None or tensor is None:
        return value
    array = np.frombuffer(value, dtype=np.dtype(tensor.dtype).newbyteorder("<")).reshape(tensor.shape)
    return array.tolist() if array.size <= _MOST_VALUES else type_text(field)
