"""Search spaces: the named parameters of a search, what they may be and how they depend on each other."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword
from types import MappingProxyType
from typing import Any

from cargobike.core.errors import SpaceError, nearest
from cargobike.core.records import Params
from cargobike.search.spaces.combinations import count_combinations, grid_points, walk
from cargobike.search.spaces.conditions import Needs, check_conditions, dependency_order, is_active, needs_of
from cargobike.search.spaces.parameter import Parameter
from cargobike.search.spaces.specs import Spec, read_spec
from cargobike.search.spaces.values import NotPlainError, Value, from_json, shown

__all__ = ["Parameter", "Searchspace", "Spec"]


class Searchspace:
    """What may be tried: an ordered set of named parameters.

    A parameter is written as a tuple `(type, values, scale, options)`, of which scale and options may be left
    out, or as a list of choices. Types are `DOUBLE` and `INTEGER` (`[low, high]`, both included), `DISCRETE`
    (listed numbers) and `CATEGORICAL` (listed values). Scales are `linear`, `log`, `reverse-log`. Options are

    - `step`: distance between neighbours, counted from `low`;
    - `points`: how many values a grid takes of a range;
    - `when`: the parameter exists only when another has a value, `{"optimizer": "sgd"}`, or one of several,
      `{"layers": [2, 3]}`.

    Any name will do; those that are no Python names go into a dict, `Searchspace({"weight-decay": ...})`.
    Equal spaces have equal parameters in the same order.

    Example:
        >>> space = Searchspace(
        ...     lr=("DOUBLE", [1e-4, 1e-1], "log"),
        ...     optimizer=["sgd", "adam"],
        ...     momentum=("DOUBLE", [0.0, 0.9], {"step": 0.1, "when": {"optimizer": "sgd"}}),
        ... )
        >>> space.names
        ('lr', 'optimizer', 'momentum')
        >>> space.contains({"lr": 0.01, "optimizer": "adam"})
        True

    Raises:
        SpaceError: If anything is wrong; it lists all mistakes of all parameters.
    """

    def __init__(self, specs: Mapping[str, Spec] | None = None, /, **named: Spec) -> None:
        self._declared: dict[str, Parameter] = {}
        self._needs: dict[str, Needs] = {}
        self._order: tuple[str, ...] = ()
        if specs is not None and not isinstance(specs, Mapping):
            raise SpaceError(f"a search space is made of names and specifications, not of {shown(specs)}")
        self._extend([*(specs or {}).items(), *named.items()])

    @staticmethod
    def double(low: float, high: float, **options: Any) -> Spec:
        """Specify a range of floats; options are `scale`, `step`, `points` and `when`."""
        return ("DOUBLE", [low, high], options)

    @staticmethod
    def integer(low: int, high: int, **options: Any) -> Spec:
        """Specify a range of integers, both ends included; options as for `double`."""
        return ("INTEGER", [low, high], options)

    @staticmethod
    def discrete(values: Sequence[float], *, when: Mapping[str, Any] | None = None) -> Spec:
        """Specify a choice of numbers, whose order means something."""
        return ("DISCRETE", values, {"when": when})

    @staticmethod
    def categorical(values: Sequence[Any], *, when: Mapping[str, Any] | None = None) -> Spec:
        """Specify a choice of values without an order."""
        return ("CATEGORICAL", values, {"when": when})

    def add(self, name: str, spec: Spec) -> None:
        """Add one parameter; if it is wrong, the space stays as it was."""
        self._extend([(name, spec)])

    def _extend(self, specs: Iterable[tuple[object, object]]) -> None:
        mistakes: list[str] = []
        parameters = dict(self._declared)
        conditions = {name: parameter.condition for name, parameter in parameters.items()}
        for name, spec in specs:
            if not isinstance(name, str) or not name:
                mistakes.append(f"a parameter's name must be a string with at least one character, not {shown(name)}")
                continue
            if name in conditions:
                mistakes.append(f"{name}: declared twice")
                continue
            parameter, conditions[name] = read_spec(name, spec, mistakes)
            if parameter is not None:
                parameters[name] = parameter
        parameters = check_conditions(parameters, conditions, mistakes)
        if mistakes:
            raise SpaceError("this search space cannot be used:", mistakes)
        self._declared = parameters
        self._needs = {name: needs_of(parameter) for name, parameter in parameters.items()}
        self._order = dependency_order({name: p.condition for name, p in parameters.items()})

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, as declared."""
        return tuple(self._declared)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters by name, as declared; read-only."""
        return MappingProxyType(self._declared)

    def active_names(self, params: Mapping[str, object]) -> tuple[str, ...]:
        """Return the names of the parameters that exist beside these values, as declared."""
        known: dict[str, object] = {}
        for name in self._order:
            if name in params and is_active(self._needs[name], known):
                known[name] = params[name]
        return tuple(name for name in self._declared if is_active(self._needs[name], known))

    def sample(self, rng: random.Random) -> Params:
        """Draw one set of parameters, each evenly on its scale."""
        return self._build(lambda parameter: parameter.from_unit(rng.random()))

    def get_random_parameter_values(self, num: int, rng: random.Random | None = None) -> list[Params]:
        """Draw `num` sets of parameters; without `rng`, from fresh randomness."""
        rng = rng or random.Random()
        return [self.sample(rng) for _ in range(num)]

    def contains(self, params: Mapping[str, object]) -> bool:
        """Tell whether this is a set of parameters that the space could suggest."""
        return not self._read(params)[1]

    def validate(self, params: Mapping[str, object]) -> Params:
        """Return the parameters as the space would have suggested them: plain values, in declared order.

        Raises:
            SpaceError: If they do not lie in the space; lists everything that is wrong.
        """
        clean, mistakes = self._read(params)
        if mistakes:
            raise SpaceError("these parameters do not lie in the search space:", mistakes)
        return clean

    def to_unit(self, params: Mapping[str, object]) -> list[float | None]:
        """Map parameters to numbers in [0, 1], in declared order, `None` for those that do not exist.

        Ranges are mapped evenly on their scale, choices to the middle of one of equal parts.
        """
        clean = self.validate(params)
        return [p.to_unit(clean[name]) if name in clean else None for name, p in self._declared.items()]

    def from_unit(self, vector: Sequence[float | None]) -> Params:
        """Undo `to_unit`; numbers are cut to [0, 1], and a missing number that is needed counts as 0.5."""
        if len(vector) != len(self):
            raise SpaceError(f"the vector has {len(vector)} numbers, the space {len(self)} parameters")
        if any(unit is not None and math.isnan(unit) for unit in vector):
            raise SpaceError(f"the vector {list(vector)!r} holds NaN, which is nowhere in a space")
        units = dict(zip(self._declared, vector, strict=True))

        def pick(parameter: Parameter) -> Value:
            unit = units[parameter.name]
            return parameter.from_unit(0.5 if unit is None else float(unit))

        return self._build(pick)

    @property
    def is_finite(self) -> bool:
        """Whether the space holds a countable number of combinations."""
        return all(parameter.count is not None for parameter in self._declared.values())

    @property
    def size(self) -> int | None:
        """How many combinations the space holds, `None` if a range is continuous."""
        if not self.is_finite:
            return None
        return count_combinations(self._ordered, dict.fromkeys(self._declared))

    def grid_size(self, counts: Mapping[str, int] | None = None) -> int:
        """Return how many sets `grid` yields, without making them."""
        return count_combinations(self._ordered, grid_points(self._declared, counts))

    def grid(self, counts: Mapping[str, int] | None = None) -> Iterator[Params]:
        """Yield every combination once, the last parameter changing fastest.

        Args:
            counts: How many values to take of a range, `{"lr": 5}`; goes before the specification's `points`.

        Raises:
            SpaceError: If a continuous range has neither; raised by the call, not by the first step.
        """
        return map(self._as_declared, walk(self._ordered, grid_points(self._declared, counts)))

    def describe(self) -> list[dict[str, Any]]:
        """Return the space as data that JSON can hold; `from_description` undoes it."""
        return [parameter.describe() for parameter in self._declared.values()]

    @classmethod
    def from_description(cls, description: Iterable[Mapping[str, Any]]) -> Searchspace:
        """Make a space from what `describe` returned, also after a trip through JSON."""
        space = cls()
        space._extend(_pair_of(told) for told in description)
        return space

    def to_dict(self) -> dict[str, Spec]:
        """Return the parameters as tuples, from which `Searchspace(...)` makes an equal space."""
        return {name: _tuple_of(parameter) for name, parameter in self._declared.items()}

    @property
    def _ordered(self) -> list[Parameter]:
        return [self._declared[name] for name in self._order]

    def _build(self, pick: Callable[[Parameter], Value]) -> Params:
        known: Params = {}
        for name in self._order:
            if is_active(self._needs[name], known):
                known[name] = pick(self._declared[name])
        return self._as_declared(known)

    def _as_declared(self, params: Params) -> Params:
        return {name: params[name] for name in self._declared if name in params}

    def _read(self, params: Mapping[str, object]) -> tuple[Params, list[str]]:
        """Return the parameters cleaned, and what is wrong with them."""
        mistakes = [
            f"{shown(name)} is not a parameter of this space.{nearest(str(name), self.names)}"
            for name in params
            if name not in self._declared
        ]
        clean: Params = {}
        unclear: set[str] = set()  # their own value is wrong, so what depends on them cannot be judged
        for name in self._order:
            parameter = self._declared[name]
            if unclear.intersection(parent for parent, _ in parameter.condition):
                unclear.add(name)
            elif not is_active(self._needs[name], clean):
                if name in params:
                    mistakes.append(f"{name}: does not exist here, only when {_condition_text(parameter)}")
            elif name not in params:
                mistakes.append(f"{name}: is missing")
                unclear.add(name)
            else:
                try:
                    clean[name] = parameter.clean(params[name])
                except NotPlainError as error:
                    mistakes.append(f"{name}: {error}")
                    unclear.add(name)
        return self._as_declared(clean), mistakes

    def __getitem__(self, name: str) -> Parameter:
        return self._declared[name]

    def __len__(self) -> int:
        return len(self._declared)

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __contains__(self, name: object) -> bool:
        return name in self._declared

    def __eq__(self, other: object) -> bool:
        # As text, because True, 1 and 1.0 are equal in Python and still different choices.
        return isinstance(other, Searchspace) and repr(self.describe()) == repr(other.describe())

    def __repr__(self) -> str:
        specs = self.to_dict()
        if all(name.isidentifier() and not iskeyword(name) for name in specs):
            return f"Searchspace({', '.join(f'{name}={spec!r}' for name, spec in specs.items())})"
        return f"Searchspace({specs!r})"


def _pair_of(told: object) -> tuple[object, object]:
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


def _tuple_of(parameter: Parameter) -> Spec:
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


def _condition_text(parameter: Parameter) -> str:
    return " and ".join(
        f"{name} is {' or '.join(repr(value) for value in wanted)}" for name, wanted in parameter.condition
    )
