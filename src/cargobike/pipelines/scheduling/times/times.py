"""What every calendar can say: which of its times follow another, and which were the last."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.times import Seconds, read_seconds

SHORTEST_S = 1.0
LONGEST_S = 10 * 366 * 86400.0


class Times(ABC):
    """The times of a schedule, in seconds since 1970, without end or until none follows."""

    @abstractmethod
    def next_after(self, at: float) -> float | None:
        """Return the first time after another; `None` if none follows."""

    @abstractmethod
    def last(self, most: int, after: float, until: float) -> list[float]:
        """Return the last times, at most so many, that come after one moment and not after another; oldest first."""


class Every(Times):
    """The times that are whole numbers of a period away from a start, not counting the start itself.

    A period is elapsed time: a day of `every="1d"` has 24 hours, also when clocks are changed.
    """

    def __init__(self, period_s: float, start: float) -> None:
        self._period_s = period_s
        self._start = start

    def next_after(self, at: float) -> float:
        """Return the first time after another."""
        number = max(math.floor((at - self._start) / self._period_s), 0) + 1
        while self._time(number - 1) > at and number > 1:  # division and multiplication round differently
            number -= 1
        while self._time(number) <= at:
            number += 1
        return self._time(number)

    def last(self, most: int, after: float, until: float) -> list[float]:
        """Return the last times in a stretch."""
        newest = math.floor((until - self._start) / self._period_s) + 1
        numbers = range(max(newest - most - 1, 1), newest + 1)
        return [time for time in map(self._time, numbers) if after < time <= until][-most:]

    def _time(self, number: int) -> float:
        return self._start + number * self._period_s


def read_period(given: Seconds) -> float:
    """Return the length of a period in seconds.

    Raises:
        InvalidInputError: If it is no length of time, or shorter than a second or longer than ten years.
    """
    seconds = read_seconds("every", given, may_be_zero=True)
    if seconds is None or not SHORTEST_S <= seconds <= LONGEST_S:
        raise InvalidInputError(
            f'every must be between one second and ten years, such as "15m", "12h" or "7d"; {given!r} was given.'
        )
    return seconds
