"""What a search is after, beyond one number: several objectives, and limits that a result must keep."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Direction, Trial, TrialState

AnyTrial = TypeVar("AnyTrial", bound=Trial)

_CONSTRAINT = re.compile(r"\s*(?P<name>\S+?)\s*(?P<operator><=|>=)\s*(?P<bound>\S+)\s*")


class Constraint(msgspec.Struct, frozen=True):
    """A limit that a returned metric must keep, such as `latency_ms <= 50`."""

    name: str
    operator: str
    bound: float

    def violation(self, metrics: Mapping[str, float]) -> float:
        """Return by how much the limit is broken, 0 if it is kept; a missing or NaN metric breaks it without limit."""
        value = metrics.get(self.name, math.nan)
        over = value - self.bound if self.operator == "<=" else self.bound - value
        return math.inf if math.isnan(over) else max(0.0, over)

    def __str__(self) -> str:
        short = f"{self.bound:g}"
        return f"{self.name} {self.operator} {short if float(short) == self.bound else repr(self.bound)}"


class Goals(msgspec.Struct, frozen=True, kw_only=True):
    """Objectives (none: the one number that the train function returns) and constraints."""

    objectives: dict[str, Direction] = {}
    constraints: tuple[Constraint, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that every result must hold."""
        return tuple(dict.fromkeys([*self.objectives, *(constraint.name for constraint in self.constraints)]))

    def violation(self, metrics: Mapping[str, float]) -> float:
        """Return by how much all limits together are broken, 0 if all are kept."""
        return sum(constraint.violation(metrics) for constraint in self.constraints)


def read_constraints(given: Sequence[str] | str) -> tuple[Constraint, ...]:
    """Read constraints written as `"latency_ms <= 50"`.

    Example:
        >>> str(read_constraints("latency_ms <= 50")[0])
        'latency_ms <= 50'

    Raises:
        InvalidInputError: If some cannot be read; lists all mistakes.
    """
    found: list[Constraint] = []
    mistakes: list[str] = []
    for text in [given] if isinstance(given, str) else given:
        match = _CONSTRAINT.fullmatch(str(text))
        try:
            bound = float(match["bound"]) if match else math.nan
        except ValueError:
            bound = math.nan
        if match is None or not math.isfinite(bound):
            mistakes.append(f'{text!r} is not "metric <= number" or "metric >= number"')
        else:
            found.append(Constraint(match["name"], match["operator"], bound))
    if mistakes:
        where = "Those between parameters belong to the space: Searchspace(…, constraints=['a < b'])."
        raise InvalidInputError(f"Some constraints on metrics are not understood. {where}", mistakes)
    return tuple(found)


def pareto_front(trials: Iterable[AnyTrial], objectives: Mapping[str, Direction]) -> list[AnyTrial]:
    """Return the completed trials that keep all limits and that no other such trial beats in every objective.

    Equal trials all belong to the front. Trials with a NaN among their objectives do not.
    """
    signs = {name: 1.0 if direction == "max" else -1.0 for name, direction in objectives.items()}
    scored: list[tuple[tuple[float, ...], AnyTrial]] = []
    for trial in trials:
        if trial.state is not TrialState.COMPLETED or trial.violation > 0:
            continue
        score = tuple(sign * trial.metrics.get(name, math.nan) for name, sign in signs.items())
        if not any(math.isnan(part) for part in score):
            scored.append((score, trial))
    # In descending order none is beaten by a later one, so each need only be compared with the front so far.
    scored.sort(key=lambda pair: pair[0], reverse=True)
    front: list[tuple[tuple[float, ...], AnyTrial]] = []
    for score, trial in scored:
        if not any(_beats(other, score) for other, _ in front):
            front.append((score, trial))
    return sorted((trial for _, trial in front), key=lambda trial: trial.number)


def _beats(left: tuple[float, ...], right: tuple[float, ...]) -> bool:
    return left != right and all(a >= b for a, b in zip(left, right, strict=True))
