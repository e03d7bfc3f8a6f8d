"""Conditions between parameters: checking them, ordering by them, telling which parameters exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cargobike.core.errors import nearest
from cargobike.search.spaces.parameter import Condition, Parameter
from cargobike.search.spaces.values import NotPlainError, Value, identity, plain

Needs = tuple[tuple[str, frozenset[object]], ...]
"""A condition with its values as `identity` keys, for quick look-up."""


def check_conditions(
    parameters: Mapping[str, Parameter], conditions: Mapping[str, Condition], mistakes: list[str]
) -> dict[str, Parameter]:
    """Return the parameters with their conditions; what makes no sense is added to `mistakes`.

    Args:
        parameters: The parameters that could be read.
        conditions: The condition of every declared name, also of those whose specification is wrong.
        mistakes: Where mistakes go.
    """
    checked: dict[str, Condition] = {}
    for child, condition in conditions.items():
        pairs = []
        for parent, wanted in condition:
            if parent not in conditions:
                guess = nearest(parent, [name for name in conditions if name != child])
                mistakes.append(f"{child}: depends on {parent!r}, which is not a parameter of this space.{guess}")
            elif parent not in parameters:
                pairs.append((parent, wanted))
            else:
                pairs.append((parent, _wanted_of(parameters[parent], wanted, child, mistakes)))
        checked[child] = tuple(pairs)
    circle = _circle(checked)
    if circle:
        who = "depends on itself" if len(circle) == 1 else "depend on each other in a circle"
        mistakes.append(f"{', '.join(circle)}: {who}; a condition must lead to a parameter that always exists")
    return {name: replace(parameter, condition=checked[name]) for name, parameter in parameters.items()}


def _circle(conditions: Mapping[str, Condition]) -> list[str]:
    left = set(conditions) - set(dependency_order(conditions))
    while True:
        needed = {parent for name in left for parent, _ in conditions[name]}
        if left <= needed:
            return [name for name in conditions if name in left]
        left &= needed


def _wanted_of(parent: Parameter, wanted: tuple[Value, ...], child: str, mistakes: list[str]) -> tuple[Value, ...]:
    if parent.count is None:
        mistakes.append(f"{child}: cannot depend on {parent.name!r}, which is continuous; give that one a step")
        return wanted
    found: dict[object, Value] = {}
    for value in wanted:
        try:
            clean = parent.clean(plain(value))
        except NotPlainError as error:
            mistakes.append(f"{child}: depends on a value that {parent.name!r} never has: {error}")
        else:
            found[identity(clean)] = clean
    return tuple(sorted(found.values(), key=parent.to_unit))


def dependency_order(conditions: Mapping[str, Condition]) -> tuple[str, ...]:
    """Return the names, each after those it depends on, else as declared; a circle is left out."""
    ordered: dict[str, None] = {}
    waiting = dict(conditions)
    while waiting:
        ready = (child for child, pairs in waiting.items() if all(parent in ordered for parent, _ in pairs))
        first = next(ready, None)
        if first is None:
            break
        ordered[first] = None
        del waiting[first]
    return tuple(ordered)


def needs_of(parameter: Parameter) -> Needs:
    """Return the condition in the form that `is_active` reads."""
    return tuple((name, frozenset(map(identity, values))) for name, values in parameter.condition)


def is_active(needs: Needs, known: Mapping[str, object]) -> bool:
    """Tell whether a parameter exists beside these values of the others."""
    return not needs or all(name in known and identity(known[name]) in allowed for name, allowed in needs)
