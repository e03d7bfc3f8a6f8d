"""What a program says besides numbers, as plain data: it is written down and shown, not compared and never pickled."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Any

import msgspec

from cargobike.core.values.numbers import NotANumberError, describe, to_float
from cargobike.core.values.packed_numbers import pack_number

MOST_BYTES = 32_000
"""Information goes into the journal and onto the screen."""
_LONGEST_TEXT = 2_000
_MOST_ITEMS = 100
_DEEPEST = 5
_LARGEST_INT = 2**63 - 1


def to_information(value: object) -> Any:
    """Return plain data that says what a value is; of what is no plain data only a description remains.

    Example:
        >>> to_information({"path": "m.pt", "classes": (1, 2), "fitted": True})
        {'path': 'm.pt', 'classes': [1, 2], 'fitted': True}
    """
    try:
        plain = _plain(value, 0)
        is_small = len(msgspec.msgpack.encode(plain)) <= MOST_BYTES
    except Exception:  # noqa: BLE001 - objects of users may raise anything when they are looked at
        return _description(value)
    return plain if is_small else _description(value)


def to_text(text: str) -> str:
    """Return a text that can be encoded: lone surrogates, as in names of files that are no text, become visible."""
    return text.encode(errors="backslashreplace").decode()


def _plain(value: object, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _cut(to_text(value))
    if isinstance(value, int):
        return int(value) if abs(value) <= _LARGEST_INT else _description(value)
    if isinstance(value, float):
        return pack_number(float(value))
    if isinstance(value, os.PathLike):
        return _cut(to_text(os.fsdecode(value)))
    if depth < _DEEPEST:
        if isinstance(value, Mapping):
            items = islice(value.items(), _MOST_ITEMS)
            told = {_name(name): _plain(item, depth + 1) for name, item in items}
            return told if len(value) <= _MOST_ITEMS else {**told, "…": f"{len(value) - _MOST_ITEMS} more"}
        if isinstance(value, (Sequence, Set)) and not isinstance(value, (bytes, bytearray, memoryview)):
            entries = [_plain(item, depth + 1) for item in islice(value, _MOST_ITEMS)]
            return entries if len(value) <= _MOST_ITEMS else [*entries, f"… {len(value) - _MOST_ITEMS} more"]
    try:
        number = to_float(value)
    except NotANumberError:
        return _description(value)
    return int(number) if math.isfinite(number) and number.is_integer() else pack_number(number)


def _name(name: object) -> str:
    """Return the key of a dict as text."""
    plain = name if isinstance(name, str) else repr(name) if isinstance(name, (int, float)) else describe(name)
    return to_text(plain)[:_LONGEST_TEXT]


def _description(value: object) -> str:
    return f"{to_text(describe(value))}: only this description was kept"


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}… ({len(text) - _LONGEST_TEXT} more characters)"
