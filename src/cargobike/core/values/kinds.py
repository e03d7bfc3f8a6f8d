"""Arguments of the right kind: returned if they are, and otherwise refused in a sentence that says what to give."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.numbers import NotANumberError, describe, to_float, whole_by_type

_FLAGS = (True, False)


def read_mapping(name: str, value: object, example: str) -> dict[Any, Any]:
    """Return a dict, refusing anything else.

    Example:
        >>> read_mapping("params", {"lr": 0.1}, "{'lr': 0.1}")
        {'lr': 0.1}
    """
    if isinstance(value, Mapping):
        return dict(value)
    raise InvalidInputError(f"{name} must be a dict, such as {example}; {describe(value)} was given.")


def read_several(name: str, value: object, example: str) -> tuple[Any, ...]:
    """Return a list or another collection as a tuple, refusing a single thing, a text and a dict."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return tuple(value)
    raise InvalidInputError(f"{name} must be a list, such as {example}; {describe(value)} was given.")


def read_text(name: str, value: object) -> str:
    """Return a text, refusing anything else."""
    if isinstance(value, str):
        return value
    raise InvalidInputError(f"{name} must be a text, {describe(value)} was given.")


def read_flag(name: str, value: object) -> bool:
    """Return True or False, also of a library's own; a text such as `"no"` is true in Python, and refused here."""
    if value in _FLAGS if isinstance(value, int) else type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise InvalidInputError(f"{name} must be True or False, {describe(value)} was given.")


def read_path(name: str, value: object, *, may_be_empty: bool = False) -> str:
    """Return a path as a text, refusing what is no path."""
    try:
        path = os.fspath(value)  # type: ignore[call-overload] # asks whether it is one
    except TypeError:
        path = None
    if not isinstance(path, str) or not (path or may_be_empty):
        raise InvalidInputError(f"{name} must be a path, {describe(value)} was given.")
    return path


def read_count(name: str, value: object, *, least: int = 0) -> int:
    """Return a whole number, also of NumPy, refusing anything else and what is too small.

    Example:
        >>> read_count("rank", 3)
        3
    """
    number = whole_by_type(value)
    if number is not None and number >= least:
        return number
    raise InvalidInputError(f"{name} must be a whole number of at least {least}, {describe(value)} was given.")


def is_number(value: object, fits: Callable[[float], bool]) -> bool:
    """Tell whether it is a number, and one that fits.

    Example:
        >>> is_number(3, lambda number: number > 2), is_number("3", lambda number: number > 2)
        (True, False)
    """
    try:
        return fits(to_float(value))
    except NotANumberError:
        return False


def unfit(*rules: tuple[str, object, Callable[[float], bool], str]) -> list[str]:
    """Return what is wrong with numbers: of each its name, the number, whether it fits, and what to give instead.

    Example:
        >>> unfit(("patience", "a", lambda number: number >= 1, "give 1 or more"))
        ["patience='a': give 1 or more"]
    """
    return [f"{name}={value!r}: {advice}" for name, value, fits, advice in rules if not is_number(value, fits)]
