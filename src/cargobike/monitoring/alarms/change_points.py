"""Change points in a stream of numbers, such as a model's errors: ADWIN (Bifet and Gavalda, 2007).

The newest numbers are kept as a window whose mean is the estimate of what is true now. Whenever the window can be cut
in two parts whose means differ by more than chance allows, the older part is forgotten. Numbers are kept in buckets of
1, 2, 4, … of them, so that the memory grows with the logarithm of the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.numbers import read_number

_BUCKETS: Final = 5
"""How many buckets of one size there are, before the two oldest become one of twice the size."""


class ChangePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was found.

    Attributes:
        at: The number of the value that showed it, from 0.
        since: About which value it began with: the first one that is not forgotten.
        before: The mean of what was forgotten.
        after: The mean of what is left.
    """

    at: int
    since: int
    before: float
    after: float


class _Bucket(msgspec.Struct, array_like=True):
    """Several values that follow each other: how many, their sum, and the sum of squared distances from their mean."""

    count: int
    total: float
    squares: float


class ChangePoints(msgspec.Struct, kw_only=True):
    """Finds changes of the mean in a stream; plain data, which can be stored between two values.

    Args:
        false_alarms: How likely, at most, a cut is found at one moment though nothing has changed.
        every: After how many values it is looked for cuts; each look costs some microseconds.
        least: How many values each part must have.

    Example:
        >>> stream = ChangePoints()
        >>> points = stream.update([0.1] * 300 + [0.9] * 100)
        >>> len(points), 295 <= points[0].since <= 305
        (1, True)
    """

    false_alarms: float = 0.002
    every: int = 8
    least: int = 5
    seen: int = 0
    lowest: float = math.inf
    highest: float = -math.inf
    buckets: list[_Bucket] = []
    """The oldest first; sizes never grow from one to the next."""

    def __post_init__(self) -> None:
        if not 0 < self.false_alarms < 1 or self.every < 1 or self.least < 1:
            raise InvalidInputError(
                f"false_alarms={self.false_alarms}, every={self.every}, least={self.least} were given; false_alarms is "
                "between 0 and 1, the others are at least 1."
            )

    @property
    def width(self) -> int:
        """How many values the window has."""
        return sum(bucket.count for bucket in self.buckets)

    @property
    def mean(self) -> float:
        """The mean of the window; NaN before the first value."""
        width = self.width
        return sum(bucket.total for bucket in self.buckets) / width if width else math.nan

    def update(self, values: float | Iterable[float]) -> list[ChangePoint]:
        """Add a value, or several in order; return the changes that they show.

        Raises:
            InvalidInputError: If one is no finite number.
        """
        points = []
        for value in values if isinstance(values, Iterable) else (values,):
            number = read_number(value, "A value of the stream")
            if not math.isfinite(number):
                raise InvalidInputError(f"Value {self.seen} of the stream is {number}; leave out what is not known.")
            self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)
            self._insert(number)
            self.seen += 1
            if self.seen % self.every == 0 and (point := self._shrink()):
                points.append(point)
        return points

    def _insert(self, value: float) -> None:
        self.buckets.append(_Bucket(1, value, 0.0))
        end = len(self.buckets)
        while True:  # buckets of one size stand side by side; where there are too many, the two oldest are merged
            size = self.buckets[end - 1].count
            begin = end
            while begin and self.buckets[begin - 1].count == size:
                begin -= 1
            if end - begin <= _BUCKETS:
                return
            self.buckets[begin : begin + 2] = [_merged(self.buckets[begin], self.buckets[begin + 1])]
            end = begin + 1

    def _shrink(self) -> ChangePoint | None:
        """Forget the older part as long as a cut shows that it differs.

        The first paper forgets the oldest values only, and so says the same change several times. The cut at which the
        parts differ most says once when it was.
        """
        forgotten = _Bucket(0, 0.0, 0.0)
        while cut := self._best_cut():
            for bucket in self.buckets[:cut]:
                forgotten = _merged(forgotten, bucket)
            del self.buckets[:cut]
        if not forgotten.count:
            return None
        return ChangePoint(
            at=self.seen - 1,
            since=self.seen - self.width,
            before=forgotten.total / forgotten.count,
            after=self.mean,
        )

    def _best_cut(self) -> int:
        """Return how many buckets are before the cut that shows a change best; 0 if none does."""
        whole = _Bucket(0, 0.0, 0.0)
        for bucket in self.buckets:
            whole = _merged(whole, bucket)
        best, farthest = 0, 1.0
        old = _Bucket(0, 0.0, 0.0)
        for place, bucket in enumerate(self.buckets, 1):
            old = _merged(old, bucket)
            if old.count >= self.least and whole.count - old.count >= self.least:
                unusual = self._unusual(old, whole)
                if unusual > farthest:
                    best, farthest = place, unusual
        return best

    def _unusual(self, old: _Bucket, whole: _Bucket) -> float:
        """Return how far the means of two parts are apart, where 1 is as far as chance allows."""
        new = whole.count - old.count
        apart = abs(old.total / old.count - (whole.total - old.total) / new)
        reach = self.highest - self.lowest
        rounding = 1e-9 * max(abs(self.lowest), abs(self.highest), 1e-300)
        return apart / (limit(old.count, new, whole.squares / whole.count, reach, self.false_alarms) + rounding)


def limit(old: int, new: int, variance: float, reach: float, false_alarms: float) -> float:
    """Return how far the means of two parts of a window may be apart by chance.

    Args:
        old: How many values the older part has.
        new: How many the newer part has.
        variance: The variance of the whole window.
        reach: How far the lowest and the highest value can be apart.
        false_alarms: How likely a larger distance is, at most, at any of the cuts.
    """
    cuts = math.log(2 * math.log(old + new) / false_alarms)
    harmonic = 1 / old + 1 / new
    return math.sqrt(2 * harmonic * variance * cuts) + 2 / 3 * cuts * harmonic * reach


def _merged(one: _Bucket, other: _Bucket) -> _Bucket:
    count = one.count + other.count
    if not one.count or not other.count:
        return _Bucket(count, one.total + other.total, one.squares + other.squares)
    apart = one.total / one.count - other.total / other.count
    between = apart * apart * one.count * other.count / count
    return _Bucket(count, one.total + other.total, one.squares + other.squares + between)
