"""Reading what a train function gave back: one score, or several named numbers.

NumPy, torch, JAX and TensorFlow scalars are recognised by how they behave (`item()`, `numel()`, `size`,
`__float__`), so that none of these libraries has to be imported here.
"""

from __future__ import annotations

import dataclasses
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from cargobike.core.errors import InvalidInputError, nearest

_ALLOWED = "Allowed are a number, a NumPy or torch scalar, or a dict of named numbers."
_TRUTH = "A truth value is no score: if 1.0 and 0.0 are meant, convert it with `float(...)`."
_REPR_LENGTH = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What a train function achieved.

    Attributes:
        value: The number to optimize; `None` only for a single tracked run that named none.
        metrics: All named numbers that were returned, the optimized one among them.
    """

    value: float | None
    metrics: dict[str, float]


class _NotANumberError(Exception):
    """Carries the sentence that says why a value cannot be a score, and what to do."""


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
        value = _to_float(returned)
    except _NotANumberError as problem:
        raise InvalidInputError(
            f"The train function returned {_describe(returned)}, which is no score. {_ALLOWED} {problem}"
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


def read_metrics(metrics: Mapping[str, object]) -> dict[str, float]:
    """Turn the metrics of one `report` into floats; names every metric that is no number.

    Raises:
        InvalidInputError: If a value is no number.

    Example:
        >>> read_metrics({"accuracy": 1})
        {'accuracy': 1.0}
    """
    for value in metrics.values():
        if type(value) is not float:  # the common case, a plain float, must cost next to nothing
            return _read_all(metrics, "A report holds metrics that are no numbers.")
    return dict(cast("Mapping[str, float]", metrics))


def read_number(value: object, name: str) -> float:
    """Turn one number of any library into a float.

    Raises:
        InvalidInputError: If it is no number; the message calls it `name`.
    """
    try:
        return _to_float(value)
    except _NotANumberError as problem:
        raise InvalidInputError(f"{name} must be a number, got {_describe(value)}. {problem}") from None


def read_whole(step: object) -> int:
    """Turn a step of any library into a whole number, if it is one.

    Raises:
        InvalidInputError: If it is none.
    """
    try:
        number = int(step)  # type: ignore[call-overload]
        if number == step:
            return int(number)
    except (TypeError, ValueError):
        pass
    raise InvalidInputError(f"step must be a whole number, {step!r} ({type(step).__name__}) was given")


def read_index(step: object) -> int:
    """Return a step that must be whole by its type, as it becomes part of a name.

    Raises:
        InvalidInputError: If it is not.
    """
    if not isinstance(step, bool):
        try:
            return operator.index(step)  # type: ignore[arg-type] # asks whether it is one
        except TypeError:
            pass
    raise InvalidInputError(f"step must be a whole number, got {step!r}.")


def _read_mapping(returned: Mapping[object, object], metric: str | None, *, optional: bool) -> Outcome:
    if not returned and not optional:
        raise InvalidInputError(
            "The train function returned an empty dict, in which there is no score. "
            "Return at least the number to optimize, for example `{'accuracy': accuracy}`."
        )
    metrics = _read_all(returned, "The train function returned a dict that does not hold numbers only.")
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


def _read_all(given: Mapping[str, object] | Mapping[object, object], summary: str) -> dict[str, float]:
    numbers: dict[str, float] = {}
    mistakes: list[str] = []
    for name, value in given.items():
        if not isinstance(name, str):
            mistakes.append(f"the name {_describe(name)} is no text; use a str")
            continue
        try:
            numbers[name] = _to_float(value)
        except _NotANumberError as problem:
            mistakes.append(f"{name!r} is {_describe(value)}. {problem}")
    if mistakes:
        raise InvalidInputError(f"{summary} Allowed are numbers and NumPy or torch scalars.", mistakes)
    return numbers


def _to_float(value: object) -> float:
    kind = type(value)
    if kind is float:
        return cast("float", value)
    if kind is bool:
        raise _NotANumberError(_TRUTH)
    if isinstance(value, (str, bytes, bytearray)):
        raise _NotANumberError("If the text holds a number, convert it with `float(...)`.")
    count = _count_elements(value)
    if count is not None and count != 1:
        raise _NotANumberError(f"It has {count} elements: reduce it to one number, for example with `.mean()`.")
    item = getattr(value, "item", None)
    if count == 1 and callable(item):
        value = item()
        if isinstance(value, bool):
            raise _NotANumberError(_TRUTH)
    if isinstance(value, complex) or not hasattr(type(value), "__float__"):
        raise _NotANumberError(_advise(value))
    try:
        return float(cast("float", value))
    except OverflowError:
        raise _NotANumberError("It is too large for a float: scale it down or return its logarithm.") from None
    except (TypeError, ValueError):
        raise _NotANumberError("It cannot be converted with `float(...)`.") from None


def _count_elements(value: object) -> int | None:
    """Return how many numbers an array or tensor holds, `None` for what is neither."""
    if isinstance(value, int):
        return None
    numel = getattr(value, "numel", None)
    if callable(numel):
        count = cast("Callable[[], object]", numel)()
        return count if isinstance(count, int) else None
    size = getattr(value, "size", None)
    return size if isinstance(size, int) else None


def _advise(value: object) -> str:
    """Say what to do about a value that is no number, as far as its type tells what was meant."""
    if value is None:
        return "The function ended without `return`: end it with `return score`."
    if isinstance(value, types.GeneratorType):
        return "Did you mean `return` instead of `yield`? Intermediate scores go to `trial.report(...)`."
    if isinstance(value, types.CoroutineType):
        value.close()  # nobody will await it, and Python would say so on stderr next to our own message
        return "A train function is a plain `def`: call `asyncio.run(...)` inside it and return the result."
    if isinstance(value, types.AsyncGeneratorType):
        return "A train function is a plain `def` that ends with `return score`."
    if hasattr(value, "_asdict"):
        return "Return its numbers with `._asdict()`."
    if isinstance(value, (list, tuple, set, frozenset)):
        return "Name the numbers: return a dict such as `{'accuracy': accuracy, 'loss': loss}`."
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "Return its numbers with `dataclasses.asdict(...)`."
    if isinstance(value, complex):
        return "Return its `abs(...)` or its `.real`."
    if callable(value):
        return "Did you forget to call it? Models and other objects go to `trial.checkpoint.save(...)`."
    return "Return the score alone; models and other objects go to `trial.checkpoint.save(...)`."


def _describe(value: object) -> str:
    """Name a value's type and show as much of it as fits into a sentence."""
    if value is None:
        return "None"
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        shown = " ".join(repr(value)[: 20 * _REPR_LENGTH].split())
    except Exception:  # noqa: BLE001 - a user's broken __repr__ must not hide the message we are composing
        return name
    if len(shown) > _REPR_LENGTH:
        shown = f"{shown[:_REPR_LENGTH]}…"
    return f"{name} ({shown})"
