"""Time zones by their names."""

from __future__ import annotations

import functools
import zoneinfo

from cargobike.core.errors import InvalidInputError, nearest

UTC_NAME = "UTC"


@functools.cache
def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """Return the time zone with a name such as `Europe/Oslo`.

    Raises:
        InvalidInputError: If there is no such zone.
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        pass
    known = zoneinfo.available_timezones()
    if not known:
        raise InvalidInputError(
            f"The time zone {name!r} cannot be looked up: this machine has no list of time zones. "
            "Install one: pip install tzdata"
        )
    raise InvalidInputError(
        f"{name!r} is no time zone; write one of the names of the IANA list, such as 'UTC' or 'Europe/Oslo'."
        f"{nearest(name, known)}"
    )
