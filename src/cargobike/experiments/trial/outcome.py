"""Reads what a train function returned: one score, or several named numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.values.numbers import NotANumberError, describe, read_all, to_float

_ALLOWED = "Allowed are a number, a NumPy or torch scalar, or a dict of named numbers."


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What a train function achieved.

    Attributes:
        value: The number to optimize; `None` only for a single tracked run that named none.
        metrics: All named numbers that were returned, the optimized one among them.
    """

    value: float | None
    metrics: dict[str, float]


def read_outcome(returned: object, metric: str | None, *, optional: bool) -> Outcome:
    """Turn the return value of a train function into an `Outcome`.

    Args:
        returned: What the function returned.
        metric: Which key of a returned dict is the score; gives a plain number its name.
        optional: Whether the run can do without a score, as a single tracked run can: then `None` is fine,
            and so is a dict of several numbers of which none was chosen.

    Raises:
        InvalidInputError: If there is no score in it; says what was returned, what is allowed and what to do.

    Example:
        >>> read_outcome({"loss": 0.25}, None, optional=False)
        Outcome(value=0.25, metrics={'loss': 0.25})
    """
    if returned is None and optional:
        return Outcome(None, {})
    if isinstance(returned, Mapping):
        return _read_mapping(returned, metric, optional=optional)
    try:
        value = to_float(returned)
    except NotANumberError as problem:
        raise InvalidInputError(
            f"The train function returned {describe(returned)}, which is not a score. {_ALLOWED} {problem}"
        ) from None
    return Outcome(value, {metric: value} if metric is not None else {})


def check_names(outcome: Outcome, needed: Sequence[str]) -> None:
    """Make sure that an outcome holds every metric that the search needs.

    Raises:
        InvalidInputError: If some are missing, each with the nearest name that is there.
    """
    missing = [name for name in needed if name not in outcome.metrics]
    if missing:
        there = ", ".join(map(repr, outcome.metrics)) or "none"
        raise InvalidInputError(
            f"The search needs the metrics {', '.join(map(repr, needed))}; the train function returned {there}. "
            f"Return a dict that holds them all.{nearest(missing[0], outcome.metrics)}"
        )


def _read_mapping(returned: Mapping[object, object], metric: str | None, *, optional: bool) -> Outcome:
    if not returned and not optional:
        raise InvalidInputError(
            "The train function returned an empty dict, in which there is no score. "
            "Return at least the number to optimize, for example `{'accuracy': accuracy}`."
        )
    metrics = read_all(returned, "The train function returned a dict that does not hold numbers only.")
    names = ", ".join(repr(name) for name in metrics)
    if metric is not None:
        if metric not in metrics:
            if not metrics:
                return Outcome(None, {})
            raise InvalidInputError(
                f"metric={metric!r} is not in the dict that the train function returned; it holds {names}."
                f"{nearest(metric, metrics)}"
            )
        return Outcome(metrics[metric], metrics)
    if len(metrics) == 1:
        return Outcome(next(iter(metrics.values())), metrics)
    if optional:
        return Outcome(None, metrics)
    raise InvalidInputError(
        f"The train function returned several numbers: {names}. "
        f"Say which one to optimize, for example `metric={next(iter(metrics))!r}`."
    )
