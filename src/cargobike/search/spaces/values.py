"""Plain data: the values that a hyperparameter may have, so that each survives a journal written in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from cargobike.core.errors import SpaceError

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"

LARGEST_INTEGER = 2**53
"""Beyond this a float, and many a reader of JSON, cannot tell an integer from its neighbour."""


_DEEPEST: Final = 100
"""How deep lists may be nested in a value that is read: far beyond what is meant, far below what Python can follow."""


class NotPlainError(ValueError):
    """A value is not plain data; the message is the reason, to be put into a larger sentence."""


def plain(value: object) -> Value:
    """Return `value` as plain data: NumPy's and torch's scalars become Python's, subclasses their built-in.

    Raises:
        NotPlainError: If it is anything but `None`, a bool, a finite number, a string or a tuple of these.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise NotPlainError(f"{shown(value)} is beyond ±2**53, where JSON and floats lose precision")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotPlainError(f"{shown(value)} is not a finite number")
        return float(value)
    if isinstance(value, str):
        text = str.__str__(value)
        if not text.isascii() and text.encode(errors="ignore").decode() != text:
            raise NotPlainError(f"{shown(value)} holds half of a character (a surrogate), which no file can hold")
        return text
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    scalar = _scalar(value)
    if scalar is not None:
        return plain(scalar)
    raise NotPlainError(f"{shown(value)} is not plain data{_advice(value)}")


def plain_list(value: object) -> list[object] | None:
    """Return the items of a list, range, set or one-dimensional array, `None` for anything else."""
    if isinstance(value, list | range):
        return list(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=lambda item: (type(item).__name__, repr(item)))
    if getattr(value, "ndim", None) == 1:
        convert = getattr(value, "tolist", None)
        return list(convert()) if callable(convert) else None
    return None


def identity(value: object) -> object:
    """Return a key that tells values apart as people do: `True` is not `1`, but `1` is `1.0`."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, tuple):
        return tuple(identity(item) for item in value)
    return value


def is_number(value: object) -> bool:
    """Tell whether `value` is an int or a float, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_json(value: Value) -> Any:
    """Turn tuples into lists, as JSON has them."""
    return [as_json(item) for item in value] if isinstance(value, tuple) else value


def from_json(value: object, depth: int = 0) -> object:
    """Undo `as_json`: turn lists into tuples, at every depth that a person could mean."""
    if not isinstance(value, list | tuple):
        return value
    if depth == _DEEPEST:
        raise SpaceError(f"a value is nested too deeply: more than {_DEEPEST} lists within each other")
    return tuple(from_json(item, depth + 1) for item in value)


def shown(value: object) -> str:
    """Return a value as it looks in a message: cut where it gets long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _scalar(value: object) -> object:
    """Unwrap a zero-dimensional array or tensor without importing the library that it came from."""
    if getattr(value, "ndim", None) != 0:
        return None
    unwrap = getattr(value, "item", None)
    return unwrap() if callable(unwrap) else None


def _advice(value: object) -> str:
    if isinstance(value, list):
        return f"; write a tuple: {shown(tuple(value))}"
    if isinstance(value, Mapping | set | frozenset):
        return "; name it with a string and look it up in the train function"
    return f" (a {type(value).__name__}); name it with a string and look it up in the train function"
