"""Reads what a train function returned: one score, or several named numbers, and what it says besides."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.values.information import to_information, to_text
from cargobike.core.values.numbers import NotANumberError, describe, explain, to_float

_ALLOWED = "Allowed are a number, a NumPy or torch scalar, or a dict of named numbers."

RETURNED: Final = "returned"
"""What the information of a run is called that returned no dict."""


class Outcome(msgspec.Struct, frozen=True):
    """What a train function achieved.

    Attributes:
        value: The number to optimize; `None` only for a single tracked run that named none.
        metrics: All named numbers that were returned, the optimized one among them.
        extras: What was returned besides, as plain data.
    """

    value: float | None
    metrics: dict[str, float]
    extras: dict[str, Any] = msgspec.field(default_factory=dict)


class CleanExit(msgspec.Struct, frozen=True):
    """Stands for what a train function returned that ended in good order by `sys.exit`, as programs do.

    Attributes:
        call: The call that ended it, such as `sys.exit(0)`.
    """

    call: str

    @staticmethod
    def of(exception: SystemExit) -> CleanExit | None:
        """Return what stands for an exit that a shell or `torchrun` would call a success, `None` for any other."""
        code = exception.code
        if code is None:
            return CleanExit("sys.exit()")
        return CleanExit(f"sys.exit({code:d})") if isinstance(code, int) and code == 0 else None


def read_outcome(returned: object, metric: str | None, *, optional: bool) -> Outcome:
    """Turn the return value of a train function into an `Outcome`.

    A training that is over must not be lost because of what it says at the end: what is no number is kept beside a
    score, or instead of one where none was asked for.

    Args:
        returned: What the function returned.
        metric: Which key of a returned dict is the score; gives a plain number its name.
        optional: Whether the run can do without a score, as a single tracked run can: then `None` is fine,
            and so is a dict of several numbers of which none was chosen, and anything that is no number.

    Raises:
        InvalidInputError: If there is no score in it; says what was returned, what is allowed and what to do.

    Example:
        >>> read_outcome({"loss": 0.25, "path": "m.pt"}, None, optional=False)
        Outcome(value=0.25, metrics={'loss': 0.25}, extras={'path': 'm.pt'})
    """
    if type(returned) is float:  # as most do
        return Outcome(returned, {metric: returned} if metric is not None else {})
    if isinstance(returned, CleanExit):
        if not optional:
            raise InvalidInputError(
                f"The train function ended with {returned.call}, without a score. End it with `return score`."
            )
        returned = None
    if returned is None and optional:
        return Outcome(None, {})
    if isinstance(returned, Mapping):
        return _read_mapping(returned, metric, optional=optional)
    try:
        value = to_float(returned)
    except NotANumberError as problem:
        if optional and metric is None and not isinstance(returned, _UNFINISHED):
            return Outcome(None, {}, {RETURNED: to_information(returned)})
        raise InvalidInputError(
            f"The train function returned {describe(returned)}, which is not a score. {_ALLOWED} {problem}"
        ) from None
    return Outcome(value, {metric: value} if metric is not None else {})


_UNFINISHED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
"""What a function returns that has not run at all."""


def check_names(outcome: Outcome, needed: Sequence[str]) -> None:
    """Make sure that an outcome holds every metric that the search needs.

    Raises:
        InvalidInputError: If some are missing, each with the nearest name that is there.
    """
    missing = [name for name in needed if name not in outcome.metrics]
    if missing:
        there = ", ".join(map(repr, outcome.metrics)) or "none"
        others = ", ".join(map(repr, outcome.extras))
        besides = f" and, not as numbers, {others}" if others else ""
        wanted = ", ".join(map(repr, needed))
        raise InvalidInputError(
            f"The search needs the metrics {wanted}; the train function returned {there}{besides}. "
            f"Return a dict that holds them all.{nearest(missing[0], outcome.metrics)}"
        )


def _read_mapping(returned: Mapping[object, object], metric: str | None, *, optional: bool) -> Outcome:
    if not returned and not optional:
        raise InvalidInputError(
            "The train function returned an empty dict, in which there is no score. "
            "Return at least the number to optimize, for example `{'accuracy': accuracy}`."
        )
    metrics, others = _sort(returned)
    extras = _as_information(others)
    names = ", ".join(map(repr, returned))
    if metric is not None:
        if metric in metrics:
            return Outcome(metrics[metric], metrics, extras)
        if not returned:
            return Outcome(None, {})
        if metric in others:
            raise InvalidInputError(
                f"metric={metric!r} is no number in the dict that the train function returned. "
                f"{explain(metric, others[metric])}"
            )
        raise InvalidInputError(
            f"metric={metric!r} is not in the dict that the train function returned; it holds {names}."
            f"{nearest(metric, metrics)}"
        )
    if len(metrics) == 1:
        return Outcome(next(iter(metrics.values())), metrics, extras)
    if optional:
        return Outcome(None, metrics, extras)
    if not metrics:
        raise InvalidInputError(
            "The train function returned a dict in which there is no number. "
            "Allowed are numbers and NumPy or torch scalars.",
            [_mistake(name, value) for name, value in others.items()],
        )
    raise InvalidInputError(
        f"The train function returned several numbers: {', '.join(map(repr, metrics))}. "
        f"Say which one to optimize, for example `metric={next(iter(metrics))!r}`."
    )


def _sort(returned: Mapping[object, object]) -> tuple[dict[str, float], dict[object, object]]:
    """Return the named numbers of a dict, and everything else."""
    metrics: dict[str, float] = {}
    others: dict[object, object] = {}
    for name, value in returned.items():
        try:
            number = to_float(value)
        except NotANumberError:
            others[name] = value
            continue
        if isinstance(name, str):
            metrics[to_text(name)] = number
        else:
            others[name] = value
    return metrics, others


def _as_information(others: dict[object, object]) -> dict[str, Any]:
    information = to_information(others)
    return information if isinstance(information, dict) else {RETURNED: information}


def _mistake(name: object, value: object) -> str:
    return explain(name, value) if isinstance(name, str) else f"the name {describe(name)} is no text; use a str"
