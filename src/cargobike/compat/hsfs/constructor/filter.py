"""Conditions on features, as `fg.amount > 3` makes them: kept as SQL over names that stand for features."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from cargobike.core.errors import InvalidInputError

_EDGE: Final = "\x1f"
_PLACE: Final = re.compile(f"{_EDGE}([0-9]+){_EDGE}")


class Place(NamedTuple):
    """A feature of a version of a group."""

    group: str
    version: int
    feature: str


class Logic:
    """A condition; `&` and `|` put several together.

    Args:
        text: SQL, in which the numbers of features stand between marks; `fill` puts names there.
        places: The features.
    """

    def __init__(self, text: str, places: tuple[Place, ...]) -> None:
        self.text = text
        self.places = places

    def __and__(self, other: Logic) -> Logic:
        return self._with(other, "AND")

    def __or__(self, other: Logic) -> Logic:
        return self._with(other, "OR")

    def __bool__(self) -> bool:
        raise InvalidInputError(
            "A condition on features has no truth of its own; put several together with & and |, in brackets: "
            "(fg.a > 1) & (fg.b < 2)."
        )

    def __repr__(self) -> str:
        return fill(self.text, [place.feature for place in self.places])

    def _with(self, other: Logic, word: str) -> Logic:
        if not isinstance(other, Logic):
            raise InvalidInputError(f"{other!r} was given; a condition such as fg.amount > 3 is needed.")
        behind = [_mark(len(self.places) + number) for number in range(len(other.places))]
        return Logic(f"({self.text}) {word} ({fill(other.text, behind)})", (*self.places, *other.places))


class Filter(Logic):
    """A condition on one feature."""


def fill(text: str, names: Sequence[str]) -> str:
    """Return the text of a condition with names in the places of its features."""
    return _PLACE.sub(lambda match: names[int(match[1])], text)


def _mark(number: int) -> str:
    return f"{_EDGE}{number}{_EDGE}"


def compare(place: Place, operator: str, value: Any) -> Filter:
    """Return the condition that a feature stands in a relation to a value."""
    if value is None and operator in {"=", "!="}:
        return Filter(f"{_mark(0)} IS {'NOT ' if operator == '!=' else ''}NULL", (place,))
    if hasattr(value, "place"):
        return Filter(f"{_mark(0)} {operator} {_mark(1)}", (place, value.place))
    return Filter(f"{_mark(0)} {operator} {_literal(value)}", (place,))


def is_in(place: Place, values: Iterable[Any]) -> Filter:
    """Return the condition that a feature has one of some values."""
    listed = [_literal(value) for value in values]
    return Filter(f"{_mark(0)} IN ({', '.join(listed)})" if listed else f"1 = 0 AND {_mark(0)} IS NULL", (place,))


def _literal(value: Any) -> str:
    """Return a value as SQL writes it."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime.datetime):
        moment = value.astimezone(datetime.UTC) if value.tzinfo else value
        return f"'{moment:%Y-%m-%d %H:%M:%S.%f}+00:00'"  # DuckDB and Spark compare it as a time
    if isinstance(value, datetime.date):
        return f"'{value:%Y-%m-%d}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace(_EDGE, "") + "'"
    raise InvalidInputError(
        f"A feature was compared with {type(value).__name__}; compare it with numbers, texts, truths, dates or times."
    )
