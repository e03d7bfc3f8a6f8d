"""Functions that a view names: found again by where they are defined, never by unpickling."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from cargobike.core.errors import InvalidInputError

Function = Callable[..., Any]


def reference_of(function: Function) -> str:
    """Return where a function is defined, as `module:name`."""
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"


def find_functions(references: Mapping[str, str], given: Mapping[str, Function], view: str) -> dict[str, Function]:
    """Return the functions that a view names, by what they are for.

    Args:
        references: `module:name` of each.
        given: Those that the caller brings along, for functions of notebooks and scripts.
        view: The view, for errors.

    Raises:
        InvalidInputError: If functions cannot be found; lists all.
    """
    functions: dict[str, Function] = {}
    mistakes = []
    for name, reference in references.items():
        function = given[name] if name in given else _load(reference)
        if callable(function):
            functions[name] = function
        else:
            mistakes.append(f"{name} is computed by {reference}, which cannot be imported here.")
    if mistakes:
        raise InvalidInputError(
            f"Functions of the view {view} are missing. Put them into a module that can be imported, or give them: "
            f"features.view({view!r}, functions={{'name': function}}).",
            mistakes,
        )
    return functions


def parameters_of(function: Function) -> list[str]:
    """Return the names of the arguments of a function.

    Raises:
        InvalidInputError: If it has none that can be told.
    """
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    if not names:
        raise InvalidInputError(
            f"{reference_of(function)} has no named arguments; an on-demand feature is a function of features and of "
            "values of the request, such as: def distance(latitude, longitude): …"
        )
    return names


def _load(reference: str) -> Any:
    module, _, name = reference.partition(":")
    if module == "__main__" or "<" in name:
        return None
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return found
