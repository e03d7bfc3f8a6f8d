"""Arguments that are one of a few words, and moments in the history of a group."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, TypeVar, get_args

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.values.numbers import describe

_T = TypeVar("_T")

Moment = int | str | datetime | date
"""The number of a commit, or a time: a datetime, a date or a text such as `"2026-05-01 12:00"`, UTC without a zone."""


def read_choice(name: str, given: _T, allowed: Any) -> _T:
    """Return one of the words of a `Literal`.

    Raises:
        InvalidInputError: If it is another one.
    """
    words = get_args(allowed)
    if given not in words:
        close = nearest(given, words) if isinstance(given, str) else ""
        raise InvalidInputError(f"{name} must be {' or '.join(map(repr, words))}, {describe(given)} was given.{close}")
    return given


def read_moment(name: str, given: Moment) -> int | datetime:
    """Return the number of a commit, or a time in UTC.

    Raises:
        InvalidInputError: If it is neither.
    """
    if isinstance(given, str):
        try:
            given = int(given) if given.strip().isdigit() else datetime.fromisoformat(given.strip())
        except ValueError:
            given = None  # type: ignore[assignment] # told below
    if isinstance(given, bool) or not isinstance(given, int | date):
        raise InvalidInputError(
            f"{name} must be the number of a commit or a time such as '2026-05-01 12:00'; {describe(given)} was given."
        )
    if isinstance(given, int):
        return given
    if not isinstance(given, datetime):
        return datetime(given.year, given.month, given.day, tzinfo=UTC)
    return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
