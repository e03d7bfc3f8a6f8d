"""Floats as they stand in a journal, NaN and infinities included."""

from __future__ import annotations

import math
from typing import Literal

Number = float | Literal["nan", "inf", "-inf"]
"""A float as it stands in a journal: JSON has no word for NaN and infinities, and they must not be lost."""


def pack_number(value: float) -> Number:
    """Turn a float into what a journal can hold."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def unpack_number(value: Number) -> float:
    """Undo `pack_number`."""
    return float(value)


def pack_numbers(values: dict[str, float]) -> dict[str, Number]:
    """Apply `pack_number` to every value."""
    return {name: pack_number(value) for name, value in values.items()}


def unpack_returned(value: Number | dict[str, Number] | None) -> float | dict[str, float] | None:
    """Return what a rank returned, from what a journal holds of it."""
    if isinstance(value, dict):
        return unpack_numbers(value)
    return None if value is None else float(value)


def unpack_numbers(values: dict[str, Number]) -> dict[str, float]:
    """Undo `pack_numbers`."""
    return {name: float(value) for name, value in values.items()}
