"""Scales: how a numeric range is stretched before it is walked evenly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

ScaleName = Literal["linear", "log", "reverse-log"]
SCALE_NAMES: tuple[ScaleName, ...] = get_args(ScaleName)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range on a scale, mapped to evenly walked units from 0 to 1 and back.

    On `log` every order of magnitude gets the same share. `reverse-log` does the same with the distance to a
    ceiling, so that values crowd near the top: the ceiling is 1 for a range inside [0, 1), such as momentum's
    [0.9, 0.999]; for other ranges it is `low + high`, which mirrors `log`.
    """

    scale: ScaleName
    start: float
    end: float
    ceiling: float
    _first: float = field(init=False, repr=False)
    _length: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Stretch the ends once and for all."""
        first = self._forward(self.start)
        object.__setattr__(self, "_first", first)
        object.__setattr__(self, "_length", self._forward(self.end) - first)

    def unit(self, value: float) -> float:
        """Return where `value` lies between the ends, from 0 to 1."""
        if self._length <= 0.0:  # ends so close that their logarithms are equal
            return 0.0
        return min(1.0, max(0.0, (self._forward(value) - self._first) / self._length))

    def value(self, unit: float) -> float:
        """Return the value at `unit`, never beyond the ends."""
        if unit <= 0.0:
            return self.start
        if unit >= 1.0:
            return self.end
        return min(self.end, max(self.start, self._backward(self._first + unit * self._length)))

    def _forward(self, value: float) -> float:
        if self.scale == "linear":
            return value
        if self.scale == "log":
            return math.log(value)
        # log1p keeps the digits of values near 0, which 1 - value would lose
        return -math.log1p(-value) if self.ceiling == 1.0 else -math.log(self.ceiling - value)

    def _backward(self, stretched: float) -> float:
        if self.scale == "linear":
            return stretched
        if self.scale == "log":
            return math.exp(stretched)
        if self.ceiling == 1.0:
            return -math.expm1(-stretched)
        return self.ceiling - math.exp(-stretched)


def ceiling_of(low: float, high: float) -> float:
    """Return the value that a reverse-log range approaches."""
    return 1.0 if low >= 0.0 and high < 1.0 else low + high


def stretch(scale: ScaleName, low: float, high: float) -> Stretch:
    """Return the stretch of a continuous range."""
    return Stretch(scale, low, high, ceiling_of(low, high))


def stretch_of_lattice(scale: ScaleName, low: float, high: float, *, last: float, step: float) -> Stretch:
    """Return the stretch of a range with steps, half a step wider at both ends.

    Every lattice point owns the cell around it; without the extra halves the points at the ends would own
    half as much as the others and be suggested half as often. Near the pole of a logarithm the cell shrinks
    with the distance.
    """
    ceiling = ceiling_of(low, high)
    start, end = low - step / 2, last + step / 2
    if scale == "log":
        start = max(start, low / 2)
    elif scale == "reverse-log":
        distance = ceiling - last
        end = ceiling - max(distance - step / 2, distance / 2)
    return Stretch(scale, start, end, ceiling)
