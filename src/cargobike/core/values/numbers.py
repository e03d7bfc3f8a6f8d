"""Reading numbers of any library: scalars of NumPy, torch, JAX and TensorFlow, and named ones.

They are recognised by how they behave (`item()`, `numel()`, `size`, `__float__`), so that none of these libraries has
to be imported here.
"""

from __future__ import annotations

import dataclasses
import operator
import types
from collections.abc import Callable, Mapping
from typing import Final, cast

from cargobike.core.errors import InvalidInputError

_TRUTH = "A truth value is no score: if 1.0 and 0.0 are meant, convert it with `float(...)`."
_REPR_LENGTH = 60

FIRST_STEP: Final = -(2**63)
LAST_STEP: Final = 2**63 - 1


class NotANumberError(Exception):
    """Carries the sentence that says why a value cannot be a score, and what to do."""


def read_metrics(metrics: Mapping[str, object]) -> dict[str, float]:
    """Turn the metrics of one `report` into floats; names every metric that is not a number.

    Raises:
        InvalidInputError: If a value is not a number.

    Example:
        >>> read_metrics({"accuracy": 1})
        {'accuracy': 1.0}
    """
    for value in metrics.values():
        if type(value) is not float:  # the common case, a plain float, must cost next to nothing
            return read_all(metrics, "A report holds metrics that are no numbers.")
    return dict(cast("Mapping[str, float]", metrics))


def read_reported(given: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
    """Return the metrics of a report that were given in a dict, with those that were given by name.

    Raises:
        InvalidInputError: If anything but one dict was given without a name; says how to write it.
    """
    if len(given) == 1 and isinstance(given[0], Mapping):
        twice = [name for name in given[0] if name in named]
        if twice:
            raise InvalidInputError(f"{', '.join(map(repr, twice))} was reported twice in one call.")
        unnamed = [name for name in given[0] if not isinstance(name, str)]
        if unnamed:
            mistakes = [f"the name {describe(name)} is no text; use a str" for name in unnamed]
            raise InvalidInputError("A report holds metrics without a name.", mistakes)
        return {**given[0], **named}
    values = ", ".join(describe(value) for value in given)
    raise InvalidInputError(
        f"report was given {values} without a name. Name each metric, and the step: "
        'report(loss=0.3, step=2), or report({"loss": 0.3}, step=2).'
    )


def read_number(value: object, name: str) -> float:
    """Turn one number of any library into a float.

    Raises:
        InvalidInputError: If it is not a number; the message calls it `name`.
    """
    try:
        return to_float(value)
    except NotANumberError as problem:
        raise InvalidInputError(f"{name} must be a number, got {describe(value)}. {problem}") from None


def read_whole(step: object) -> int:
    """Turn a step of any library into a whole number, if it is one.

    Raises:
        InvalidInputError: If it is none.
    """
    try:
        number = int(step)  # type: ignore[call-overload]
        is_whole = number == step and not isinstance(step, bool)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise InvalidInputError(f"step must be a whole number, {step!r} ({type(step).__name__}) was given")
    return _in_range(number)


def read_index(step: object) -> int:
    """Return a step that must be whole by its type, as it becomes part of a name.

    Raises:
        InvalidInputError: If it is not.
    """
    number = whole_by_type(step)
    if number is None:
        raise InvalidInputError(f"step must be a whole number, got {step!r}.")
    return _in_range(number)


def whole_by_type(value: object) -> int | None:
    """Return a number that is whole by its type, also one of NumPy; `None` for all else, truth values too.

    Example:
        >>> whole_by_type(3), whole_by_type(3.0), whole_by_type(True)
        (3, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type] # asks whether it is one
    except TypeError:
        return None


def _in_range(step: int) -> int:
    if not FIRST_STEP <= step <= LAST_STEP:
        raise step_out_of_range(step)
    return step


def step_out_of_range(step: int) -> InvalidInputError:
    """Return the error that says which steps there can be."""
    digits = f"{step:d}" if abs(step) < 10**30 else f"a number of {len(f'{abs(step):d}')} digits"
    return InvalidInputError(f"step must fit into 64 bits, from {FIRST_STEP} to {LAST_STEP}; {digits} was given")


def read_all(given: Mapping[str, object] | Mapping[object, object], summary: str) -> dict[str, float]:
    """Turn named numbers of any library into floats.

    Raises:
        InvalidInputError: If some are no numbers; the message begins with the summary, and names each.
    """
    numbers: dict[str, float] = {}
    mistakes: list[str] = []
    for name, value in given.items():
        if not isinstance(name, str):
            mistakes.append(f"the name {describe(name)} is no text; use a str")
            continue
        try:
            numbers[name] = to_float(value)
        except NotANumberError as problem:
            mistakes.append(_named(name, value, problem))
    if mistakes:
        raise InvalidInputError(f"{summary} Allowed are numbers and NumPy or torch scalars.", mistakes)
    return numbers


def explain(name: str, value: object) -> str:
    """Say of a named value that is no number what it is instead, and what to do."""
    try:
        to_float(value)
    except NotANumberError as problem:
        return _named(name, value, problem)
    return f"{name!r} is {describe(value)}."


def _named(name: str, value: object, problem: NotANumberError) -> str:
    return f"{name!r} is None." if value is None else f"{name!r} is {describe(value)}. {problem}"


def to_float(value: object) -> float:
    """Turn one number of any library into a float.

    Raises:
        NotANumberError: If it is not a number.
    """
    if type(value) is float:
        return value
    try:
        return _convert(value)
    except NotANumberError:
        raise
    except Exception as error:  # a tensor may have no data, an object may raise anything
        raise NotANumberError(f"It cannot be read as a number: {type(error).__name__}: {error}") from error


def _convert(value: object) -> float:
    if type(value) is bool:
        raise NotANumberError(_TRUTH)
    if isinstance(value, (str, bytes, bytearray)):
        raise NotANumberError("If the text holds a number, convert it with `float(...)`.")
    count = _count_elements(value)
    if count is not None and count != 1:
        raise NotANumberError(f"It has {count} elements: reduce it to one number, for example with `.mean()`.")
    item = getattr(value, "item", None)
    if count == 1 and callable(item):
        value = item()
        if isinstance(value, bool):
            raise NotANumberError(_TRUTH)
    if isinstance(value, complex) or not hasattr(type(value), "__float__"):
        raise NotANumberError(_advise(value))
    try:
        return float(cast("float", value))
    except OverflowError:
        raise NotANumberError("It is too large for a float: scale it down or return its logarithm.") from None
    except (TypeError, ValueError):
        raise NotANumberError("It cannot be converted with `float(...)`.") from None


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
    """Say what to do about a value that is not a number, as far as its type tells what was meant."""
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


def describe(value: object) -> str:
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
