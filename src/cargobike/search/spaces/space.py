"""Search spaces: the named parameters of a search, what they may be and how they depend on each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword
from types import MappingProxyType
from typing import Any

from cargobike.core.errors import SpaceError, nearest
from cargobike.core.records import Params
from cargobike.core.values.kinds import read_count
from cargobike.search.spaces.combinations import count_combinations, grid_points, walk
from cargobike.search.spaces.conditions import Needs, check_conditions, dependency_order, is_active, needs_of
from cargobike.search.spaces.constraints import Constraint, read_constraints
from cargobike.search.spaces.descriptions import condition_text, entries_of, pair_of, tuple_of
from cargobike.search.spaces.feasible import WALKED, Feasible
from cargobike.search.spaces.parameter import Parameter
from cargobike.search.spaces.specs import Spec, read_spec
from cargobike.search.spaces.values import NotPlainError, Value, shown
from cargobike.search.spaces.wrong_calls import check_by_name, check_generator, check_vector, no_such_parameter

__all__ = ["Parameter", "Searchspace", "Spec"]

_REDRAWN = 1000
"""So many draws may break constraints before the way to where they hold is taken."""
_UNREAD = Parameter("", "DOUBLE")
"""Stands for a parameter whose specification is wrong, in constraints that name it."""


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

    `constraints` are rules between parameters that every suggestion keeps: `constraints=["min_leaf < max_leaf"]`. They
    may compare and compute (`+ - * / // % **`, `abs`, `min`, `max`, `and`, `or`, `not`, `in`); names that are no Python
    names stand in backticks. A comparison with a parameter that does not exist beside the others is left out.
    Limits on what a function returns are another thing: those are the `constraints` of `experiment.launch`.

    Equal spaces have equal parameters in the same order, and equal constraints.

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
        >>> leaves = Searchspace(low=("INTEGER", [1, 9]), high=("INTEGER", [1, 9]), constraints=["low < high"])
        >>> leaves.contains({"low": 5, "high": 3})
        False

    Raises:
        SpaceError: If anything is wrong; it lists all mistakes of all parameters. Also if constraints leave nothing
            to try, or so little that it is not found.
    """

    def __init__(
        self,
        specs: Mapping[str, Spec] | None = None,
        /,
        *,
        constraints: str | Iterable[str] = (),
        **named: Spec,
    ) -> None:
        self._declared: dict[str, Parameter] = {}
        self._needs: dict[str, Needs] = {}
        self._order: tuple[str, ...] = ()
        self._constraints: tuple[Constraint, ...] = ()
        self._feasible: Feasible | None = None
        self._size: int | None = None
        if specs is not None and not isinstance(specs, Mapping):
            raise SpaceError(f"a search space is made of names and specifications, not of {shown(specs)}")
        self._extend([*(specs or {}).items(), *named.items()], constraints)

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
        self._extend([(name, spec)], self.constraints)

    def _extend(self, specs: Iterable[tuple[object, object]], constraints: object) -> None:
        try:
            self._take(specs, constraints)
        except RecursionError as error:
            raise SpaceError("this search space is nested too deeply") from error

    def _take(self, specs: Iterable[tuple[object, object]], constraints: object) -> None:
        before = dict(self.__dict__)
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
        known = {**dict.fromkeys(conditions, _UNREAD), **parameters}
        read = read_constraints(constraints, known, mistakes)
        if mistakes:
            raise SpaceError("this search space cannot be used:", mistakes)
        self._declared = parameters
        self._needs = {name: needs_of(parameter) for name, parameter in parameters.items()}
        self._order = dependency_order({name: p.condition for name, p in parameters.items()})
        self._constraints = tuple(read)
        try:
            self._look_around()
        except SpaceError:
            self.__dict__.update(before)
            raise

    def _look_around(self) -> None:
        """Find out where the constraints hold."""
        self._feasible = None
        self._size = None
        if self._constraints:
            points = dict.fromkeys(self._declared)
            can_walk = self.is_finite and (count_combinations(self._ordered, points) or 0) <= WALKED
            listed = walk(self._ordered, points, self._constraints) if can_walk else ()
            self._feasible = Feasible(self._constraints, self._at, len(self), listed=map(self._filled, listed))

    def __getstate__(self) -> dict[str, Any]:
        return {"specs": self._declared, "constraints": self.constraints}  # compiled constraints cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "specs" not in state:  # pickled before there were constraints
            state = {"specs": state["_declared"], "constraints": ()}
        Searchspace.__init__(self, state["specs"], constraints=state["constraints"])

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, as declared."""
        return tuple(self._declared)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters by name, as declared; read-only."""
        return MappingProxyType(self._declared)

    @property
    def constraints(self) -> tuple[str, ...]:
        """The rules between parameters, as they were written."""
        return tuple(constraint.text for constraint in self._constraints)

    def active_names(self, params: Mapping[str, object]) -> tuple[str, ...]:
        """Return the names of the parameters that exist beside these values, as declared."""
        check_by_name(params)
        known: dict[str, object] = {}
        for name in self._order:
            if name in params and is_active(self._needs[name], known):
                known[name] = params[name]
        return tuple(name for name in self._declared if is_active(self._needs[name], known))

    def sample(self, rng: random.Random) -> Params:
        """Draw one set of parameters, each evenly on its scale; where constraints hold, evenly as far as possible."""
        check_generator(rng)
        params = self._build(lambda parameter: parameter.from_unit(rng.random()))
        if self._feasible is None:
            return params
        for _ in range(_REDRAWN):
            if self._feasible.holds(params):
                return params
            params = self._build(lambda parameter: parameter.from_unit(rng.random()))
        return self._feasible.nearest(self._filled(params))

    def get_random_parameter_values(self, num: int, rng: random.Random | None = None) -> list[Params]:
        """Draw `num` sets of parameters; without `rng`, from fresh randomness."""
        rng = random.Random() if rng is None else rng
        return [self.sample(rng) for _ in range(read_count("num", num))]

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
        """Undo `to_unit`; numbers are cut to [0, 1], and a missing number that is needed counts as 0.5.

        Where constraints do not hold, the nearest place is taken that is found to keep them; see `try_unit`.
        """
        params = self._read_units(vector)
        if self._feasible is None or self._feasible.holds(params):
            return params
        return self._feasible.nearest([0.5 if unit is None else min(1.0, max(0.0, unit)) for unit in vector])

    def try_unit(self, vector: Sequence[float | None]) -> Params | None:
        """Return the same as `from_unit` where constraints hold, and `None` where they do not."""
        params = self._read_units(vector)
        return params if self._feasible is None or self._feasible.holds(params) else None

    def _read_units(self, vector: Sequence[float | None]) -> Params:
        check_vector(vector, len(self))
        return self._at(vector)

    def _at(self, vector: Sequence[float | None]) -> Params:
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
        """How many combinations the space holds, `None` if a range is continuous or constraints leave too many."""
        if self._size is None and self.is_finite:
            points = dict.fromkeys(self._declared)
            self._size = count_combinations(self._ordered, points, self._constraints)
        return self._size

    def grid_size(self, counts: Mapping[str, int] | None = None) -> int | None:
        """Return how many sets `grid` yields; `None` if constraints leave too many to be counted.

        Raises:
            SpaceError: If a continuous range has no count, or none of the combinations keeps the constraints.
        """
        size = count_combinations(self._ordered, grid_points(self._declared, counts), self._constraints)
        if size == 0:
            raise SpaceError(
                f"no combination of this grid keeps the constraints {', '.join(self.constraints)}; "
                "take more values of its ranges, or search it at random"
            )
        return size

    def grid(self, counts: Mapping[str, int] | None = None) -> Iterator[Params]:
        """Yield every combination once that keeps the constraints, the last parameter changing fastest.

        Args:
            counts: How many values to take of a range, `{"lr": 5}`; goes before the specification's `points`.

        Raises:
            SpaceError: If a continuous range has neither; raised by the call, not by the first step.
        """
        return map(self._as_declared, walk(self._ordered, grid_points(self._declared, counts), self._constraints))

    def describe(self) -> list[dict[str, Any]]:
        """Return the space as data that JSON can hold; `from_description` undoes it."""
        described = {name: parameter.describe() for name, parameter in self._declared.items()}
        for constraint in self._constraints:  # each stands with the last of the parameters that it speaks of
            last = max(constraint.names, key=self.names.index)
            described[last].setdefault("constraints", []).append(constraint.text)
        return list(described.values())

    @classmethod
    def from_description(cls, description: Iterable[Mapping[str, Any]]) -> Searchspace:
        """Make a space from what `describe` returned, also after a trip through JSON.

        Raises:
            SpaceError: If it is not such a description, or a wrong one; lists all mistakes.
        """
        space = cls()
        pairs = [pair_of(entry) for entry in entries_of(description)]
        constraints: list[object] = []
        for _, spec in pairs:
            own = spec.pop("constraints", ()) if isinstance(spec, dict) else ()
            constraints += own if isinstance(own, list | tuple) else [own]
        space._extend(pairs, constraints)
        return space

    def to_dict(self) -> dict[str, Spec]:
        """Return the parameters as tuples; with `constraints`, `Searchspace(...)` makes an equal space of them."""
        return {name: tuple_of(parameter) for name, parameter in self._declared.items()}

    @property
    def _ordered(self) -> list[Parameter]:
        return [self._declared[name] for name in self._order]

    def _build(self, pick: Callable[[Parameter], Value]) -> Params:
        known: Params = {}
        for name in self._order:
            if is_active(self._needs[name], known):
                known[name] = pick(self._declared[name])
        return self._as_declared(known)

    def _filled(self, params: Params) -> tuple[float, ...]:
        """Return the place of parameters, with a number also for those that do not exist."""
        return tuple(p.to_unit(params[name]) if name in params else 0.5 for name, p in self._declared.items())

    def _as_declared(self, params: Params) -> Params:
        return {name: params[name] for name in self._declared if name in params}

    def _read(self, params: object) -> tuple[Params, list[str]]:
        """Return the parameters cleaned, and what is wrong with them."""
        if not isinstance(params, Mapping):
            return {}, [f"parameters must be a dict by name, {shown(params)} was given"]
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
                    mistakes.append(f"{name}: does not exist here, only when {condition_text(parameter)}")
            elif name not in params:
                mistakes.append(f"{name}: is missing")
                unclear.add(name)
            else:
                try:
                    clean[name] = parameter.clean(params[name])
                except NotPlainError as error:
                    mistakes.append(f"{name}: {error}")
                    unclear.add(name)
        if not unclear:
            mistakes += [one.broken_by(clean) for one in self._constraints if not one.holds(clean)]
        return self._as_declared(clean), mistakes

    def __getitem__(self, name: str) -> Parameter:
        try:
            return self._declared[name]
        except (KeyError, TypeError):
            raise no_such_parameter(name, self._declared) from None

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
        rules = [f"constraints={list(self.constraints)!r}"] if self._constraints else []
        if all(name.isidentifier() and not iskeyword(name) and name != "constraints" for name in specs):
            return f"Searchspace({', '.join([*(f'{name}={spec!r}' for name, spec in specs.items()), *rules])})"
        return f"Searchspace({', '.join([repr(specs), *rules])})"
