"""Lengths of time as people write them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from cargobike.core.errors import InvalidInputError

Seconds = float | str | timedelta
"""A length of time: seconds, `"1h30m"`, `"90 min"`, or a `timedelta`."""

_UNITS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_WORDS: Final = {
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), "s"),
    "ms": "ms",
}
_PART: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*")
_LONGEST: Final = 50
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_S: Final = -62_135_000_000.0  # a week from either end, for the sake of zones
_LAST_S: Final = 253_401_700_000.0


def read_seconds(name: str, given: Seconds | None, *, may_be_zero: bool = False) -> float | None:
    """Return a length of time in seconds, `None` for no limit.

    Args:
        name: What it is called, for the error.
        given: Seconds, a text such as `"1h30m"`, `"90 min"` or `"2 days"`, a `timedelta`, or `None`.
        may_be_zero: Whether it may be 0.

    Raises:
        InvalidInputError: If it is not a length of time, or not above 0.

    Example:
        >>> read_seconds("timeout_s", "1h30m"), read_seconds("timeout_s", 2), read_seconds("timeout_s", None)
        (5400.0, 2.0, None)
    """
    if given is None:
        return None
    seconds = _seconds(given)
    if seconds is None:
        raise InvalidInputError(
            f'{name} must be a number of seconds, or a text such as "90s", "15m" or "1h30m"; {given!r} was given.'
        )
    if seconds == math.inf:
        return None
    if may_be_zero and seconds == 0:
        return 0.0
    if may_be_zero and not seconds > 0:
        raise InvalidInputError(f"{name} must be 0 or more, {given!r} was given.")
    if not seconds > 0:
        raise InvalidInputError(f"{name} must be above 0, {given!r} was given; leave it out for no limit.")
    return seconds


def on_calendar(at_s: float, zone: tzinfo | None = UTC) -> datetime:
    """Return a time as a date, `zone=None` in the zone of this machine; one that no calendar has becomes the nearest.

    Example:
        >>> on_calendar(0.0).isoformat(), on_calendar(1e300).year
        ('1970-01-01T00:00:00+00:00', 9999)
    """
    inside = min(max(at_s, _FIRST_S), _LAST_S) if at_s == at_s else 0.0  # noqa: PLR0124 - false of NaN alone
    return (_EPOCH + timedelta(seconds=inside)).astimezone(zone)


def _seconds(given: object) -> float | None:
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, str):
        return _of_text(given)
    if isinstance(given, bool):
        return None
    try:
        return float(given)  # type: ignore[arg-type]  # NumPy's numbers too; what is none raises
    except (TypeError, ValueError, OverflowError):
        return None


def _of_text(text: str) -> float | None:
    if len(text) > _LONGEST:
        return None
    position, total = 0, 0.0
    lowered = text.strip().lower()
    while position < len(lowered):
        part = _PART.match(lowered, position)
        if part is None or part[2] not in _WORDS:
            return None
        total += float(part[1]) * _UNITS[_WORDS[part[2]]]
        position = part.end()
    return total if lowered else None
