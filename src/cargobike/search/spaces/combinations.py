"""Combinations of values: walking a grid under conditions and constraints, and counting it with little walking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from cargobike.core.errors import SpaceError, nearest
from cargobike.core.records import Params
from cargobike.core.values.numbers import describe
from cargobike.search.spaces.conditions import Needs, is_active, needs_of
from cargobike.search.spaces.constraints import Constraint
from cargobike.search.spaces.parameter import Parameter
from cargobike.search.spaces.values import Value, identity

Points = dict[str, int | None]
"""How many values of each range a grid takes, `None` for all of them."""

COUNTED = 100_000
"""Up to so many combinations are walked through to count those that keep constraints."""


def grid_points(parameters: Mapping[str, Parameter], counts: Mapping[str, object] | None) -> Points:
    """Settle how many values of each parameter a grid takes.

    Raises:
        SpaceError: If a continuous range has no count, or a count makes no sense; lists all of them.
    """
    mistakes: list[str] = []
    points: Points = {name: parameter.points for name, parameter in parameters.items()}
    if counts is not None and not isinstance(counts, Mapping):
        raise SpaceError(f"counts must be a dict, such as {{'lr': 5}}; {describe(counts)} was given")
    for name, count in (counts or {}).items():
        if name not in parameters:
            mistakes.append(f"counts names {name!r}, which is not a parameter.{nearest(str(name), parameters)}")
        elif not parameters[name].is_range:
            mistakes.append(f"{name}: a list of choices is always used whole; leave it out of counts")
        elif not isinstance(count, int) or isinstance(count, bool) or count < 1:
            mistakes.append(f"{name}: its count must be a whole number of at least 1, not {count!r}")
        else:
            points[name] = count
    for name, parameter in parameters.items():
        if parameter.count is None and points[name] is None:
            mistakes.append(
                f"{name}: is continuous; say how many values to take, such as ('DOUBLE', [low, high], "
                "{'points': 5}), give it a step, or list its values"
            )
    if mistakes:
        raise SpaceError("this search space has no grid:", mistakes)
    return points


def walk(parameters: list[Parameter], points: Points, constraints: Sequence[Constraint] = ()) -> Iterator[Params]:
    """Yield every combination once that keeps the constraints, the last parameter changing fastest.

    Args:
        parameters: In dependency order.
        points: As settled by `grid_points`.
        constraints: On these parameters; each is looked at as soon as its last parameter has a value.
    """
    positions = {parameter.name: position for position, parameter in enumerate(parameters)}
    due: dict[int, list[Constraint]] = {}
    for constraint in constraints:
        due.setdefault(max(positions[name] for name in constraint.names), []).append(constraint)
    needs = [needs_of(parameter) for parameter in parameters]

    def walk_from(position: int, known: Params) -> Iterator[Params]:
        if position == len(parameters):
            yield known
            return
        for combination in _choices(parameters[position], needs[position], known, points):
            if all(constraint.holds(combination) for constraint in due.get(position, ())):
                yield from walk_from(position + 1, combination)

    return walk_from(0, {})


def _choices(parameter: Parameter, needs: Needs, known: Params, points: Points) -> Iterator[Params]:
    if not is_active(needs, known):
        yield known
        return
    for value in parameter.grid_values(points[parameter.name]):
        yield known | {parameter.name: value}


class _Other:
    """Stands for all values of a parameter that no condition names."""


def count_combinations(
    parameters: list[Parameter], points: Points, constraints: Sequence[Constraint] = ()
) -> int | None:
    """Count the combinations of values, making as few of them as possible.

    Only parameters that others depend on are walked, and of their values only those that a condition names,
    so a range of a million integers costs nothing. Those that constraints connect are walked through.

    Args:
        parameters: In dependency order.
        points: As settled by `grid_points`.
        constraints: Which combinations count.

    Returns:
        The number, or `None` if constraints leave too many of them to be counted.
    """
    sizes = {parameter.name: parameter.count or 0 for parameter in parameters}
    for parameter in parameters:
        if points[parameter.name] is not None:
            sizes[parameter.name] = sum(1 for _ in parameter.grid_values(points[parameter.name]))
    numbers: list[int] = []
    for family in _families(parameters, constraints):
        own = [one for one in constraints if one.names[0] in {parameter.name for parameter in family}]
        if not own:
            numbers.append(_count(family, points, sizes))
            continue
        if prod(sizes[parameter.name] for parameter in family) > COUNTED:
            return None
        numbers.append(sum(1 for _ in walk(family, points, own)))
    return prod(numbers)


def _count(family: list[Parameter], points: Points, sizes: dict[str, int]) -> int:
    named: dict[str, dict[object, Value]] = {}
    for parameter in family:
        for parent, values in parameter.condition:
            named.setdefault(parent, {}).update((identity(value), value) for value in values)
    for parameter in family:
        if parameter.name in named and points[parameter.name] is not None:
            taken = set(map(identity, parameter.grid_values(points[parameter.name])))
            named[parameter.name] = {key: v for key, v in named[parameter.name].items() if key in taken}
    needs = {parameter.name: needs_of(parameter) for parameter in family}

    def count_from(position: int, known: dict[str, object]) -> int:
        if position == len(family):
            return 1
        name = family[position].name
        if not is_active(needs[name], known):
            return count_from(position + 1, known)
        if name not in named:
            return sizes[name] * count_from(position + 1, known)
        total = sum(count_from(position + 1, known | {name: value}) for value in named[name].values())
        others = sizes[name] - len(named[name])
        return total + (others * count_from(position + 1, known | {name: _Other}) if others else 0)

    return count_from(0, {})


def _families(parameters: list[Parameter], constraints: Sequence[Constraint]) -> list[list[Parameter]]:
    """Split into groups that no condition and no constraint connects; each keeps the order given."""
    family_of: dict[str, set[str]] = {}
    for parameter in parameters:
        joined = {parameter.name}
        for parent, _ in parameter.condition:
            joined |= family_of[parent]
        for name in joined:
            family_of[name] = joined
    for constraint in constraints:
        joined = set[str]().union(*(family_of[name] for name in constraint.names))
        family_of.update(dict.fromkeys(joined, joined))
    distinct = {id(family): family for family in family_of.values()}
    return [[p for p in parameters if p.name in family] for family in distinct.values()]
