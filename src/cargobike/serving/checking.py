"""What a signature allows, as types that msgspec decodes into, and mistakes in words: which field of which row.

A row of one field is the bare value of that field; a row of several is an object with their names, which decodes into
a struct made for this signature, and travels on as a map.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Annotated, Any, Final, Optional

import msgspec

from cargobike.core.errors import nearest
from cargobike.core.signatures import Datatype, Field

MOST_MISTAKES: Final = 10
"""How many mistakes are named; the rest is counted."""

_LIMITS: Final[dict[Datatype, tuple[int, int | None]]] = {
    "UINT8": (0, 255),
    "UINT16": (0, 65535),
    "UINT32": (0, 2**32 - 1),
    "UINT64": (0, None),  # msgspec takes no limits beyond 63 bits
    "INT8": (-128, 127),
    "INT16": (-(2**15), 2**15 - 1),
    "INT32": (-(2**31), 2**31 - 1),
    "INT64": (-(2**63), 2**63 - 1),
}


def row_type(fields: Sequence[Field]) -> Any:
    """Return the type of a row (or an answer) with these fields, to decode into."""
    if len(fields) == 1:
        return value_type(fields[0])
    return _struct(tuple(fields))


def value_type(field: Field) -> Any:
    """Return the type of the value of one field."""
    kind: Any = _element(field.datatype)
    for length in reversed(field.shape):
        kind = list[kind] if length < 0 else Annotated[list[kind], msgspec.Meta(min_length=length, max_length=length)]
    return Optional[kind] if field.nullable else kind  # noqa: UP045 - `|` does not take what Annotated returns


def _element(datatype: Datatype) -> Any:
    if datatype == "BOOL":
        return bool
    if datatype == "BYTES":
        return str
    if datatype in _LIMITS:
        least, most = _LIMITS[datatype]
        return Annotated[int, msgspec.Meta(ge=least, le=most)]
    return float


@functools.lru_cache(maxsize=256)
def _struct(fields: tuple[Field, ...]) -> Any:
    parts: list[Any] = []
    for number, field in enumerate(fields):
        default = msgspec.field(name=field.name, **({"default": None} if field.nullable else {}))
        parts.append((f"f{number}", value_type(field), default))
    return msgspec.defstruct("Row", parts, kw_only=True, forbid_unknown_fields=True, gc=False)


def mistakes_in(rows: Sequence[Any], fields: Sequence[Field], noun: str = "row") -> list[str]:
    """Return what is wrong with rows of plain values: which field of which row, what was given, what is allowed."""
    mistakes: list[str] = []
    for number, row in enumerate(rows):
        mistakes.extend(f"{noun} {number}{mistake}" for mistake in _mistakes_in_row(row, fields))
        if len(mistakes) > MOST_MISTAKES:
            return [*mistakes[:MOST_MISTAKES], "and more"]
    return mistakes


def _mistakes_in_row(row: Any, fields: Sequence[Field]) -> list[str]:
    if len(fields) == 1:
        return [f", field {fields[0].name!r}: {problem}" for problem in _problem(row, fields[0])]
    if not isinstance(row, dict):
        some = ", ".join(field.name for field in fields[:8])
        return [f" is {shown(row)}; an object with the fields {some}{', …' * (len(fields) > 8)} is needed"]
    names = [field.name for field in fields]
    mistakes = [f" has no field {name!r}.{nearest(str(name), names)}" for name in row if name not in names]
    for field in fields:
        if field.name not in row:
            if not field.nullable:
                mistakes.append(f", field {field.name!r} is missing; {allowed(field)} is needed")
            continue
        mistakes.extend(f", field {field.name!r}: {problem}" for problem in _problem(row[field.name], field))
    return mistakes


def _problem(value: Any, field: Field) -> list[str]:
    try:
        msgspec.convert(value, value_type(field))
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        place = f" at {path.rstrip('`')}" if path else ""
        return [f"{shown(value)} was given; {allowed(field)} is needed ({reason[:1].lower()}{reason[1:]}{place})"]
    if not is_finite(value):
        return [f"{shown(value)} was given; numbers must be finite"]
    return []


def is_finite(value: Any) -> bool:
    """Tell whether no number in a plain value is NaN or infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (list, tuple)):
        return all(map(is_finite, value))
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return True


def allowed(field: Field) -> str:
    """Return in words what a field takes."""
    words = {"BOOL": "true or false", "BYTES": "a text"}.get(field.datatype, f"a number ({field.datatype})")
    if field.shape:
        sizes = " x ".join("any" if length < 0 else str(length) for length in field.shape)
        words = f"a list of {sizes} {field.datatype}"
    return f"{words} or null" if field.nullable else words


def shown(value: Any) -> str:
    """Return a value as JSON would show it, cut to a readable length."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):
        text = repr(value)
    if isinstance(value, float) and not math.isfinite(value):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}… ({type(value).__name__})"
