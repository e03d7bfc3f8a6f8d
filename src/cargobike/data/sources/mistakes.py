"""What sources say about wrong input: records that were left out, columns and types that do not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from cargobike.core.errors import InvalidInputError, nearest

_KEPT = 1000

OnError = Literal["raise", "skip"]
"""What becomes of a record that cannot be read."""


class Skip(NamedTuple):
    """A record that was left out."""

    place: str
    reason: str


class Skips:
    """Records that were left out because `on_error="skip"` was asked for: all are counted, the first ones are kept."""

    def __init__(self, count: int = 0, first: Sequence[Skip] = ()) -> None:
        self.count = count
        self.first = list(first)

    def add(self, place: str, reason: str) -> None:
        """Record one more."""
        self.count += 1
        if len(self.first) < _KEPT:
            self.first.append(Skip(place, reason))

    def as_data(self) -> list[Any]:
        """Return it as plain data."""
        return [self.count, [list(skip) for skip in self.first]]

    @classmethod
    def from_data(cls, data: Any) -> Skips:
        """Return what `as_data` described."""
        count, first = data
        return cls(count, [Skip(*skip) for skip in first])


def chosen_columns(columns: Sequence[str] | None, schema: pa.Schema) -> list[str] | None:
    """Return the names of columns, all of which exist.

    Raises:
        InvalidInputError: If some do not exist.
    """
    if columns is None:
        return None
    names = list(columns)
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise InvalidInputError(
            f"The data has no such columns; it has {', '.join(map(repr, schema.names))}.",
            [f"{name!r} is unknown.{nearest(str(name), schema.names)}" for name in unknown],
        )
    return names


def checked_choice(word: str, value: object, allowed: Sequence[str]) -> None:
    """Raise an error if a value is none of those that are allowed.

    Raises:
        InvalidInputError: If it is not.
    """
    if value not in allowed:
        near = nearest(str(value), allowed)
        raise InvalidInputError(f"{word}={value!r} was given; allowed are {', '.join(map(repr, allowed))}.{near}")


def arrow_types(schema: Mapping[str, object] | None) -> dict[str, pa.DataType]:
    """Return the types of columns that a user announced by name or as Arrow types.

    Raises:
        InvalidInputError: If a type is unknown.
    """
    types: dict[str, pa.DataType] = {}
    mistakes = []
    for name, given in (schema or {}).items():
        if isinstance(given, pa.DataType):
            types[name] = given
            continue
        try:
            types[name] = pa.type_for_alias(str(given))
        except ValueError:
            near = nearest(str(given), _ALIASES)
            mistakes.append(f"{name!r} is said to be {given!r}, which is no type.{near}")
    if mistakes:
        allowed = ", ".join(map(repr, _ALIASES))
        raise InvalidInputError(f"schema names types: a name such as {allowed}, or a pyarrow DataType.", mistakes)
    return types


_ALIASES = ("int64", "int32", "int8", "float32", "float64", "bool", "string", "binary", "date32", "timestamp[us]")
