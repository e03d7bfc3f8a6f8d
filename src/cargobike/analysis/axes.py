"""Parameters as axes: where a value lies, what is written beside it, and in which part of the space it exists."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial

Floats = npt.NDArray[np.float64]

_FEW = 8
"""Up to so many different numbers of an undescribed parameter are choices, more are a range."""
_DECADES = 1000.0
"""An undescribed range of positive numbers is drawn on a log scale if its ends are this far apart."""


@dataclass(frozen=True)
class Axis:
    """One parameter as an axis.

    Attributes:
        name: The parameter.
        kind: `"number"` for a range, `"choice"` for listed values.
        scale: How a range is stretched: `"linear"`, `"log"` or `"reverse-log"`.
        low: Lower end of a range.
        high: Upper end of a range.
        labels: What the choices are called, in the order of their positions 0, 1, 2 …
        is_whole: Whether a range holds whole numbers only.
        has_order: Whether neighbouring positions mean neighbouring values; false only for categories.
        presence: In which share of the space the parameter exists.
    """

    name: str
    kind: Literal["number", "choice"]
    scale: str = "linear"
    low: float = 0.0
    high: float = 1.0
    is_whole: bool = False
    labels: tuple[str, ...] = ()
    has_order: bool = True
    presence: float = 1.0
    _positions: Mapping[object, int] | None = None

    def position(self, value: object) -> float:
        """Return where a value lies on the axis, stretched by its scale; NaN if it lies nowhere."""
        if self.kind == "choice":
            return float((self._positions or {}).get(_key(value), math.nan))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return math.nan
        return self.stretched(float(value))

    def stretched(self, value: float) -> float:
        """Return a number as it lies on the scale of a range."""
        if self.scale == "log":
            return math.log10(value) if value > 0 else math.nan
        if self.scale == "reverse-log":
            distance = self._ceiling - value
            return -math.log10(distance) if distance > 0 else math.nan
        return value

    def unstretched(self, position: float) -> float:
        """Undo `stretched`."""
        if self.scale == "log":
            return float(10.0**position)
        if self.scale == "reverse-log":
            return float(self._ceiling - 10.0**-position)
        return position

    @property
    def ends(self) -> tuple[float, float]:
        """The positions of the two ends."""
        if self.kind == "choice":
            return 0.0, float(max(len(self.labels) - 1, 0))
        return self.stretched(self.low), self.stretched(self.high)

    @property
    def _ceiling(self) -> float:
        return 1.0 if self.low >= 0.0 and self.high < 1.0 else self.low + self.high


def axes_of(record: ExperimentRecord, trials: Sequence[Trial] | None = None) -> list[Axis]:
    """Return an axis for each parameter that has more than one value, in the order of the space.

    Parameters that the space does not describe (listed trials have no space) get an axis from the values they had.
    """
    shown = list(record.trials.values()) if trials is None else trials
    told = {str(each["name"]): each for each in record.header.space or ()}
    names = dict.fromkeys([*told, *(name for trial in shown for name in trial.params)])
    axes = []
    for name in names:
        seen = [trial.params[name] for trial in shown if name in trial.params]
        different = {_key(value): value for value in seen}
        if len(different) > 1 or (len(different) == 1 and len(seen) < len(shown)):
            axes.append(_described(told, name, different) if name in told else _inferred(name, different, shown))
    return axes


def positions_of(axes: Sequence[Axis], trials: Sequence[Trial]) -> Floats:
    """Return a row of positions for each trial and a column for each axis; NaN where a parameter does not exist."""
    table = np.full((len(trials), len(axes)), math.nan)
    for column, axis in enumerate(axes):
        for row, trial in enumerate(trials):
            if axis.name in trial.params:
                table[row, column] = axis.position(trial.params[axis.name])
    return table


def text_of(value: object, length: int = 60) -> str:
    """Return a parameter's value as people read it: floats with six digits, what is long cut."""
    text = f"{value:.6g}" if isinstance(value, float) else value if isinstance(value, str) else repr(value)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _described(told: Mapping[str, Mapping[str, Any]], name: str, seen: Mapping[object, Any]) -> Axis:
    description = told[name]
    presence = _presence(told, name)
    if description["type"] in ("DOUBLE", "INTEGER"):
        numbers = [value for value in seen.values() if _is_number(value)]
        ends = [description["low"], description["high"], *numbers]
        scale = str(description.get("scale", "linear"))
        if all(_is_number(value) for value in seen.values()) and not (scale == "log" and min(ends) <= 0):
            whole = description["type"] == "INTEGER"
            return Axis(name, "number", scale, float(min(ends)), float(max(ends)), whole, presence=presence)
        return _choice(name, seen.values(), presence)
    values = {_key(value): value for value in description["values"]}
    return _choice(name, {**values, **seen}.values(), presence)


def _inferred(name: str, seen: Mapping[object, Any], trials: Sequence[Trial]) -> Axis:
    presence = sum(name in trial.params for trial in trials) / len(trials)
    numbers = [float(value) for value in seen.values() if _is_number(value) and math.isfinite(value)]
    if len(numbers) < len(seen) or len(seen) <= _FEW:
        return _choice(name, seen.values(), presence)
    low, high = min(numbers), max(numbers)
    scale = "log" if low > 0 and high / low >= _DECADES else "linear"
    return Axis(name, "number", scale, low, high, presence=presence)


def _choice(name: str, values: Iterable[Any], presence: float) -> Axis:
    ordered = list(values)
    has_order = all(_is_number(value) for value in ordered)
    if has_order:
        ordered.sort()
    labels = [text_of(value) for value in ordered]
    if len(set(labels)) < len(labels):  # 1 and "1" are different choices, and must look it
        labels = [text_of(repr(value)) for value in ordered]
    positions = {_key(value): index for index, value in enumerate(ordered)}
    return Axis(name, "choice", labels=tuple(labels), has_order=has_order, presence=presence, _positions=positions)


def _presence(told: Mapping[str, Mapping[str, Any]], name: str) -> float:
    """Return the share of the space in which a parameter exists, its conditions taken as independent."""
    share = 1.0
    for parent, wanted in (told[name].get("when") or {}).items():
        if parent in told:
            share *= _presence(told, parent) * len(wanted) / max(_count(told[parent]), len(wanted), 1)
    return share


def _count(description: Mapping[str, Any]) -> int:
    if "values" in description:
        return len(description["values"])
    step = description.get("step") or 1
    return int((description["high"] - description["low"]) / step + 1e-9) + 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _key(value: object) -> object:
    """Return a key that is equal for equal choices, also after a trip through JSON, and tells True from 1."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list | tuple):
        return ("list", *map(_key, value))
    if isinstance(value, Mapping):
        return ("dict", *((key, _key(value[key])) for key in sorted(value, key=str)))
    return value
