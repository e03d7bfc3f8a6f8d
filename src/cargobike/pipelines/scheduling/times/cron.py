"""Cron expressions in a time zone.

Five fields: minute, hour, day of month, month, day of week; numbers, names (`MON`, `JAN`), lists, ranges, steps, and
`L` for the last day of a month. If both days are restricted, either will do, as in every cron.

When clocks are changed, the rules are those of the cron of Debian, which people know. An expression whose minute or
hour begins with `*` follows real time: it fires in both passes of an hour that is repeated, and not in one that is
left out. Any other names a time of day: it fires once on each of its days, in the first pass of an hour that is
repeated, and at the moment of the change if its time is left out.
"""

from __future__ import annotations

import bisect
import calendar
import functools
from collections.abc import Iterator
from datetime import date, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.pipelines.scheduling.times.times import Times
from cargobike.pipelines.scheduling.times.zones import UTC_NAME, zone_of

SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LONGEST: Final = 200
_DAYS_AHEAD: Final = 366 * 41
"""29 February comes once in eight years at worst, and on a given day of the week once in forty."""
_LAST_DAY: Final = 0
_FIRST_WINDOW_S: Final = 3600.0
_MONTHS: Final = tuple(name.upper() for name in calendar.month_abbr[1:])
_WEEK: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Words for numbers, from `low` on."""


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _WEEK),
)


class Cron(Times):
    """The times of a cron expression.

    Args:
        expression: Such as `0 3 * * *`, `*/15 8-17 * * MON-FRI` or `@daily`.
        timezone: The name of the zone whose clocks it means.

    Raises:
        InvalidInputError: If the expression or the zone is wrong, or there is no such time; every field is checked.
    """

    def __init__(self, expression: str, timezone: str = UTC_NAME) -> None:
        self._zone: tzinfo = zone_of(timezone)
        texts = _split(expression)
        sets, mistakes = [], []
        for field, text in zip(_FIELDS, texts, strict=True):
            try:
                sets.append(_read(field, text.upper()))
            except ValueError as error:
                mistakes.append(f"{field.name} {text!r}: {error}")
        if mistakes:
            raise InvalidInputError(f"The cron expression {expression!r} is wrong:", mistakes)
        minutes, hours, self._days, self._months, weekdays = sets
        self._weekdays = {day % 7 for day in weekdays}
        self._either_day = not texts[2].startswith("*") and not texts[4].startswith("*")
        self._is_wild = texts[0].startswith("*") or texts[1].startswith("*")
        self._of_day = sorted(hour * 60 + minute for hour in hours for minute in minutes)
        if next(self._dates(date(2000, 1, 1)), None) is None:
            raise InvalidInputError(
                f"The cron expression {expression!r} never comes: no such month has a day {texts[2]}. "
                "Write L for the last day of a month."
            )

    def next_after(self, at: float) -> float | None:
        """Return the first time after another."""
        today = datetime.fromtimestamp(at, self._zone).date()
        for day in self._dates(today - timedelta(days=1)):
            found = self._first_on(day, at)
            if found is not None:
                # A change of clocks around midnight can put times of one day after times of the next.
                of_next_day = self._first_on(day + timedelta(days=1), at)
                return found if of_next_day is None else min(found, of_next_day)
        return None

    def last(self, most: int, after: float, until: float) -> list[float]:
        """Return the last times in a stretch."""
        window_s = _FIRST_WINDOW_S
        while True:
            start = max(after, until - window_s)
            times: list[float] = []
            time = self.next_after(start)
            while time is not None and time <= until:
                times.append(time)
                time = self.next_after(time)
            if len(times) >= most or start <= after:
                return times[-most:]
            window_s *= 4

    def _first_on(self, day: date, at: float) -> float | None:
        """Return the first time on a day that comes after another time."""
        if not self._has(day):
            return None
        start, end = _midnight(day, self._zone), _midnight(day + timedelta(days=1), self._zone)
        if start is not None and end is not None and end - start == 86400:
            index = bisect.bisect_right(self._of_day, (at - start) / 60)
            return start + 60.0 * self._of_day[index] if index < len(self._of_day) else None
        return min((time for time in self._on_day_of_change(day) if time > at), default=None)

    def _on_day_of_change(self, day: date) -> Iterator[float]:
        """Yield the times on a day whose clocks are changed, in any order."""
        for minute in self._of_day:
            local = datetime(day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=self._zone)
            first, second = local.timestamp(), local.replace(fold=1).timestamp()
            if first <= second:  # it exists, once or twice
                yield first
                if self._is_wild:
                    yield second
            elif not self._is_wild:
                yield _change_between(second, first, self._zone)

    def _dates(self, first: date) -> Iterator[date]:
        """Yield the days on which it fires, from one on, as far as they matter."""
        day, last = first, first.toordinal() + _DAYS_AHEAD
        while day.toordinal() <= last:
            if day.month not in self._months:
                day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
                continue
            if self._has(day):
                yield day
            day += timedelta(days=1)

    def _has(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        is_day = day.day in self._days or (_LAST_DAY in self._days and (day + timedelta(days=1)).day == 1)
        is_weekday = day.isoweekday() % 7 in self._weekdays
        return is_day or is_weekday if self._either_day else is_day and is_weekday


@functools.lru_cache(maxsize=4096)
def _midnight(day: date, zone: tzinfo) -> float | None:
    """Return when a day begins; `None` if its clocks are changed at that moment."""
    local = datetime(day.year, day.month, day.day, tzinfo=zone)
    first = local.timestamp()
    return first if first == local.replace(fold=1).timestamp() else None


def _change_between(low: float, high: float, zone: tzinfo) -> float:
    """Return the moment at which the clocks of a zone are changed, after one time and not after another."""
    before = datetime.fromtimestamp(low, zone).utcoffset()
    early, late = int(low), int(high)
    while late - early > 1:
        middle = (early + late) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            early = middle
        else:
            late = middle
    return float(late)


def _split(expression: str) -> list[str]:
    if len(expression) > _LONGEST:
        raise InvalidInputError(
            f"cron takes a text such as '0 3 * * *', of at most {_LONGEST} characters; {expression[:30]!r}… was given."
        )
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() in SHORTHANDS:
            return SHORTHANDS[text.lower()].split()
        raise InvalidInputError(
            f"{text!r} is no shorthand of cron; there are {', '.join(SHORTHANDS)}.{nearest(text.lower(), SHORTHANDS)}"
        )
    texts = text.split()
    if len(texts) != len(_FIELDS):
        advice = " Seconds are not part of it; every= takes them." if len(texts) == len(_FIELDS) + 1 else ""
        raise InvalidInputError(
            f"The cron expression {expression!r} has {len(texts)} fields; write five: "
            f"{', '.join(field.name for field in _FIELDS)}, such as '0 3 * * *' for 3 o'clock every day.{advice}"
        )
    return texts


def _read(field: _Field, text: str) -> set[int]:
    """Return the numbers that a field allows; raises `ValueError` with what is wrong."""
    numbers: set[int] = set()
    for part in text.split(","):
        numbers |= _read_part(field, part)
    return numbers


def _read_part(field: _Field, part: str) -> set[int]:
    if part == "L" and field.name == "day of month":
        return {_LAST_DAY}
    span, slash, step_text = part.partition("/")
    step = 1
    if slash:
        if not _is_number(step_text) or int(step_text) == 0:
            raise ValueError(f"the step {step_text!r} must be a whole number above 0, as in */5")
        step = int(step_text)
        if step > field.high:
            raise ValueError(f"the step {step} is larger than {field.high}")
    if span == "*":
        top = 6 if field.name == "day of week" else field.high
        return set(range(field.low, top + 1, step))
    first_text, dash, last_text = span.partition("-")
    first = _number(field, first_text)
    if dash:
        last = _number(field, last_text)
        if last == 0 and last_text == "SUN":
            last = 7
        if first > last:
            raise ValueError(
                f"the range {span} runs backwards; write {first_text}-{field.high},{field.low}-{last_text}"
            )
    else:
        last = field.high if slash else first
    return set(range(first, last + 1, step))


def _number(field: _Field, text: str) -> int:
    allowed = f"{field.low} to {field.high}"
    if field.names:
        allowed += f", or {field.names[0]} to {field.names[-1]}"
    if text in field.names:
        return field.names.index(text) + field.low
    if not _is_number(text) or not field.low <= int(text) <= field.high:
        raise ValueError(f"{text!r} is not one of {allowed}.{nearest(text, field.names)}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 4
