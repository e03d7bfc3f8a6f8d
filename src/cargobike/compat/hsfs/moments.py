"""Times as Hopsworks writes them: datetimes, dates, numbers since 1970, and texts such as `2022/01/01`."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any, Final

from cargobike.core.errors import InvalidInputError

_DIGITS: Final = ("%Y", "%m", "%d", "%H", "%M", "%S")
_SECONDS_BELOW: Final = 10_000_000_000


def read_moment(given: Any) -> datetime:
    """Return a time in UTC.

    Raises:
        InvalidInputError: If it cannot be understood.
    """
    if isinstance(given, datetime):
        return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    if isinstance(given, date):
        return datetime(given.year, given.month, given.day, tzinfo=UTC)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return datetime.fromtimestamp(given if abs(given) < _SECONDS_BELOW else given / 1000, UTC)
    whole, _, fraction = str(given).partition(".")
    digits = re.sub(r"[^0-9]", "", whole)
    length = {4: 1, 6: 2, 8: 3, 10: 4, 12: 5, 14: 6}.get(len(digits))
    if length is None:
        raise InvalidInputError(
            f"{given!r} was given as a time; give a datetime, or a text such as '2022-01-31' or '2022-01-31 12:00:00'."
        )
    try:
        moment = datetime.strptime(digits, "".join(_DIGITS[:length])).replace(tzinfo=UTC)
        return moment.replace(microsecond=int(f"{fraction:0<6}"[:6]) if fraction.isdecimal() else 0)
    except ValueError as error:
        raise InvalidInputError(f"{given!r} was given, which is no time: {error}.") from error
