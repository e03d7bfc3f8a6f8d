"""Parameters as data and back: what `Searchspace.describe` tells, the tuples that people write, words for messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cargobike.core.errors import SpaceError
from cargobike.search.spaces.parameter import Parameter
from cargobike.search.spaces.specs import Spec
from cargobike.search.spaces.values import from_json, shown


def entries_of(description: object) -> Iterable[object]:
    """Return the entries of a described space, or refuse what is not a list."""
    if not isinstance(description, Iterable) or isinstance(description, str | Mapping):
        raise SpaceError(f"a search space is described by a list of parameters, not by {shown(description)}")
    return description


def pair_of(told: object) -> tuple[object, object]:
    """Split a parameter's description into its name and a specification, with tuples where JSON has lists."""
    if not isinstance(told, Mapping):
        return None, told
    spec = dict(told)
    name = spec.pop("name", None)
    if isinstance(spec.get("values"), list):
        spec["values"] = [from_json(value) for value in spec["values"]]
    if isinstance(spec.get("when"), Mapping):
        spec["when"] = {
            parent: [from_json(value) for value in values] if isinstance(values, list) else values
            for parent, values in spec["when"].items()
        }
    return name, spec


def tuple_of(parameter: Parameter) -> Spec:
    """Return a parameter as people write it."""
    values = [parameter.low, parameter.high] if parameter.is_range else list(parameter.values)
    scale = () if parameter.scale == "linear" else (parameter.scale,)
    options: dict[str, Any] = {}
    if parameter.step is not None:
        options["step"] = parameter.step
    if parameter.points is not None:
        options["points"] = parameter.points
    if parameter.condition:
        options["when"] = {name: list(wanted) for name, wanted in parameter.condition}
    return (parameter.type, values, *scale, *([options] if options else []))


def condition_text(parameter: Parameter) -> str:
    """Return when a parameter exists, in words."""
    return " and ".join(
        f"{name} is {' or '.join(repr(value) for value in wanted)}" for name, wanted in parameter.condition
    )
