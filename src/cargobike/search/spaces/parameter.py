"""One parameter of a search space: which values it may have, and how they are walked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, get_args

from cargobike.search.spaces.scales import ScaleName, Stretch, stretch, stretch_of_lattice
from cargobike.search.spaces.values import NotPlainError, Value, as_json, identity, is_number, plain, shown

TypeName = Literal["DOUBLE", "INTEGER", "DISCRETE", "CATEGORICAL"]
TYPE_NAMES: tuple[TypeName, ...] = get_args(TypeName)

Condition = tuple[tuple[str, tuple[Value, ...]], ...]
"""Pairs of another parameter's name and the values of it with which this one exists; all pairs must hold."""


@dataclass(frozen=True)
class Parameter:
    """One named dimension of a search space; made and checked by `Searchspace`.

    Attributes:
        name: Name of the train function's argument.
        type: `DOUBLE`, `INTEGER` (a range), `DISCRETE` (listed numbers) or `CATEGORICAL` (listed values).
        low: Smallest value of a range, included.
        high: Largest value of a range, included if the steps hit it.
        scale: How a range is walked.
        step: Distance between neighbours of a range; `None` for a continuous one.
        values: The choices of `DISCRETE` and `CATEGORICAL`, in the order given.
        condition: When the parameter exists; empty: always.
        points: How many values of a range a grid takes; `None`: all of them, where they can be counted.
    """

    name: str
    type: TypeName
    low: float | None = None
    high: float | None = None
    scale: ScaleName = "linear"
    step: float | None = None
    values: tuple[Value, ...] = ()
    condition: Condition = ()
    points: int | None = None

    @property
    def is_range(self) -> bool:
        """Whether it has bounds rather than a list of choices."""
        return self.type in ("DOUBLE", "INTEGER")

    @cached_property
    def count(self) -> int | None:
        """How many values there are, `None` for a continuous range."""
        if not self.is_range:
            return len(self.values)
        low, high, step = self._lattice
        return None if step is None else int((high - low) // step) + 1

    def at(self, index: int) -> Value:
        """Return a countable parameter's value by its position, from 0."""
        if not self.is_range:
            return self.values[index]
        if self.type == "INTEGER":
            return int(self._low) + index * int(self.step or 1)
        if self.count is None:
            raise ValueError(f"{self.name} is continuous: it has no value number {index}")
        low, step, unit = self._whole_lattice
        return (low + index * step) / unit

    def clean(self, value: object) -> Value:
        """Return `value` as this parameter would have suggested it.

        Raises:
            NotPlainError: If it is not one of the parameter's values; the message says why.
        """
        value = plain(value)
        if not self.is_range:
            position = self._positions.get(identity(value))
            if position is None:
                raise NotPlainError(f"{shown(value)} is not one of {_listed(self.values)}")
            return self.values[position]
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise NotPlainError(f"{shown(value)} is not a number")
        if not self._low <= value <= self._high:
            raise NotPlainError(f"{shown(value)} is outside [{self.low!r}, {self.high!r}]")
        if self.count is None:
            return float(value)
        nearest = self.at(self._index_near(value))
        if abs(float(nearest) - value) > 1e-9 * float(self.step or 1):  # type: ignore[arg-type]
            wanted = "an integer" if self.type == "INTEGER" and self.step is None else f"on a step of {self.step!r}"
            raise NotPlainError(f"{shown(value)} is not {wanted} in [{self.low!r}, {self.high!r}]")
        return nearest

    def to_unit(self, value: Value) -> float:
        """Map a value to [0, 1], evenly on the scale; a countable one to the middle of its cell."""
        if self.count is None:
            return self._stretch.unit(_number(value))
        if self.is_range and self.scale != "linear":
            return self._stretch.unit(_number(value))
        if self.is_range:
            return (self._index_near(_number(value)) + 0.5) / self.count
        return (self._ranks[self._positions[identity(value)]] + 0.5) / self.count

    def from_unit(self, unit: float) -> Value:
        """Map a number in [0, 1] to a value: evenly spread numbers give values that are even on the scale."""
        unit = min(1.0, max(0.0, unit))
        if self.count is None:
            return self._stretch.value(unit)
        if self.is_range and self.scale != "linear":
            return self.at(self._index_near(self._stretch.value(unit)))
        index = min(int(unit * self.count), self.count - 1)
        return self.at(index if self.is_range else self._by_rank[index])

    def grid_values(self, points: int | None = None) -> Iterator[Value]:
        """Yield the values that a grid takes, each once: all, or at most `points` spread over the range."""
        points = self.points if points is None else points
        if points is None or not self.is_range or (self.count is not None and points >= self.count):
            yield from (self.at(index) for index in range(self.count or 0))
            return
        last = self._high if self.count is None else _number(self.at(self.count - 1))
        ends = stretch(self.scale, self._low, last) if last > self._low else None
        units = [0.5] if points == 1 else [index / (points - 1) for index in range(points)]
        taken: set[Value] = set()
        for unit in units:
            value: Value = self._low if ends is None else ends.value(unit)
            if self.count is not None:
                value = self.at(self._index_near(_number(value)))
            if value not in taken:
                taken.add(value)
                yield value

    def describe(self) -> dict[str, Any]:
        """Return the parameter as data that JSON can hold, without what is left at its default."""
        told: dict[str, Any] = {"name": self.name, "type": self.type}
        if self.is_range:
            told |= {"low": self.low, "high": self.high}
        else:
            told["values"] = [as_json(value) for value in self.values]
        if self.scale != "linear":
            told["scale"] = self.scale
        if self.step is not None:
            told["step"] = self.step
        if self.points is not None:
            told["points"] = self.points
        if self.condition:
            told["when"] = {name: [as_json(value) for value in values] for name, values in self.condition}
        return told

    @property
    def _low(self) -> float:
        return _number(self.low)

    @property
    def _high(self) -> float:
        return _number(self.high)

    @cached_property
    def _lattice(self) -> tuple[Fraction, Fraction, Fraction | None]:
        # Through their decimal text: 0.1 means a tenth, and its steps hit 0.3, not 0.30000000000000004.
        step = 1 if self.step is None and self.type == "INTEGER" else self.step
        return _decimal(self._low), _decimal(self._high), None if step is None else _decimal(step)

    @cached_property
    def _whole_lattice(self) -> tuple[int, int, int]:
        """Low and step as multiples of one over the third number: exact as fractions are, and much faster."""
        low, _, step = self._lattice
        step = step or Fraction(1)
        unit = math.lcm(low.denominator, step.denominator)
        return int(low * unit), int(step * unit), unit

    @cached_property
    def _stretch(self) -> Stretch:
        if self.count is None:
            return stretch(self.scale, self._low, self._high)
        last, step = _number(self.at(self.count - 1)), float(self._lattice[2] or 1)
        return stretch_of_lattice(self.scale, self._low, self._high, last=last, step=step)

    def _index_near(self, value: float) -> int:
        low, step, unit = self._whole_lattice
        over, under = value.as_integer_ratio()
        index, rest = divmod(over * unit - low * under, step * under)
        if 2 * rest + index % 2 > step * under:  # half a step goes to the even neighbour
            index += 1
        return min(max(index, 0), (self.count or 1) - 1)

    @cached_property
    def _positions(self) -> dict[object, int]:
        return {identity(value): index for index, value in enumerate(self.values)}

    @cached_property
    def _by_rank(self) -> tuple[int, ...]:
        # Neighbours in number should be neighbours in the unit interval, in any order they were listed.
        indices = range(len(self.values))
        return tuple(sorted(indices, key=lambda i: _number(self.values[i])) if self.type == "DISCRETE" else indices)

    @cached_property
    def _ranks(self) -> dict[int, int]:
        return {index: rank for rank, index in enumerate(self._by_rank)}


def _decimal(number: float) -> Fraction:
    return Fraction(repr(number))


def _number(value: Value) -> float:
    if not is_number(value):
        raise NotPlainError(f"{shown(value)} is not a number")
    return value  # type: ignore[return-value]


def _listed(values: tuple[Value, ...]) -> str:
    shown = ", ".join(repr(value) for value in values[:12])
    return shown if len(values) <= 12 else f"{shown}, ... ({len(values)} values)"
