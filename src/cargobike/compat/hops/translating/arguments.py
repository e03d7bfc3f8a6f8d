"""What calls of hops were given, in our words: directions, lists of parameters, ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cargobike import Searchspace
from cargobike.core.errors import InvalidInputError

_FEWEST_VALUES = 2


def direction_of(direction: object) -> Literal["max", "min"]:
    """Return `"max"` or `"min"` for a direction in any case.

    Raises:
        InvalidInputError: If it is neither.
    """
    text = str(direction).lower()
    if text not in {"max", "min"}:
        raise InvalidInputError(f"direction={direction!r}; allowed are Direction.MAX and Direction.MIN.")
    return "min" if text == "min" else "max"


def lists_of(given: object, call: str) -> dict[str, list[Any]]:
    """Return a dict of lists, each with at least one value.

    Raises:
        InvalidInputError: With everything in it that is not.
    """
    if not isinstance(given, Mapping) or not given:
        raise InvalidInputError(f"{call} takes a dict of lists, such as {{'lr': [0.1, 0.01]}}; {given!r} was given.")
    mistakes = [
        f"{name}: give a list of values, {values!r} was given"
        for name, values in given.items()
        if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not len(values)
    ]
    if mistakes:
        raise InvalidInputError(f"{call} takes a dict of lists.", mistakes)
    return {str(name): list(values) for name, values in given.items()}


def runs_of(lists: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]] | dict[str, list[Any]]:
    """Return what `launch` runs for lists of arguments: row by row if they are equally long, else all combinations."""
    if len({len(values) for values in lists.values()}) == 1:
        rows = zip(*lists.values(), strict=True)
        return [dict(zip(lists, row, strict=True)) for row in rows]
    return {name: list(values) for name, values in lists.items()}


def space_of(given: object, call: str) -> Searchspace:
    """Return the space of a dict of boundaries: ints and floats are ranges, anything else is a choice.

    Raises:
        InvalidInputError: If something in it is no boundary.
    """
    space: dict[str, Any] = {}
    mistakes = []
    for name, values in lists_of(given, call).items():
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if len(numbers) != len(values) or len(set(values)) == 1:
            space[name] = ("CATEGORICAL", list(dict.fromkeys(values)))
        elif len(values) != _FEWEST_VALUES:
            mistakes.append(f"{name}: a range has two values, the lowest and the highest; {values!r} was given")
        else:
            kind = "INTEGER" if all(isinstance(value, int) for value in values) else "DOUBLE"
            space[name] = (kind, sorted(values))
    if mistakes:
        raise InvalidInputError(f"{call} takes two values for each parameter.", mistakes)
    return Searchspace(**space)


def name_of(name: object) -> str:
    """Return a name for our own calls, empty where none was chosen."""
    return "" if name in {None, "no-name"} else str(name)
