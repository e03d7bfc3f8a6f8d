"""Maggy's `Searchspace`: its methods and errors over our own space."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from cargobike.core.errors import SpaceError, nearest
from cargobike.search.spaces.space import Searchspace as Space

__all__ = ["Searchspace"]

_RANGES: Final = ("DOUBLE", "INTEGER")
_TYPES: Final = (*_RANGES, "DISCRETE", "CATEGORICAL")


class BoundsError(SpaceError, AssertionError):
    """The bounds of a range are not two numbers, the lower one first: Maggy asserted that."""


class Searchspace:
    """A search space as Maggy's scripts write and read it.

    `Searchspace(lr=("DOUBLE", [0.001, 0.1]))`: each parameter is a pair of a type (DOUBLE, INTEGER, DISCRETE,
    CATEGORICAL, in any case) and its bounds or choices, which are an attribute of the same name afterwards.

    Raises:
        SpaceError: If something is wrong, which is a ValueError; wrong bounds are an AssertionError, too.
    """

    DOUBLE: Final = "DOUBLE"
    INTEGER: Final = "INTEGER"
    DISCRETE: Final = "DISCRETE"
    CATEGORICAL: Final = "CATEGORICAL"

    def __init__(self, **specs: Any) -> None:
        self._specs: dict[str, tuple[str, Any]] = {}
        self._own = Space()
        self._rng: random.Random | None = None
        for name, spec in specs.items():
            self.add(name, spec)

    def add(self, name: str, value: Any) -> None:
        """Add one parameter.

        Args:
            name: Its name.
            value: Its type, and its bounds or choices.
        """
        kind, values = _read(name, value)
        if name in self._specs:
            raise SpaceError(f"Hyperparameter name is reserved: {name} is there already.")
        self._own.add(name, _translate(kind, values))
        self._specs[name] = (kind, value[1])

    def __getattr__(self, name: str) -> Any:
        specs = self.__dict__.get("_specs", {})
        if name in specs:
            return specs[name][1]
        raise AttributeError(f"there is no parameter and no method {name!r}.{nearest(name, specs)}")

    def as_space(self, **more: Any) -> Space:
        """Return the same as a space of ours, with further parameters."""
        space = copy.deepcopy(self._own)
        for name, spec in more.items():
            space.add(name, spec)
        return space

    def to_dict(self) -> dict[str, tuple[str, Any]]:
        """Return what `Searchspace(**...)` takes."""
        return dict(self._specs)

    def names(self) -> dict[str, str]:
        """Return the type of each parameter."""
        return {name: kind for name, (kind, _) in self._specs.items()}

    def get(self, name: str, default: Any = None) -> Any:
        """Return the bounds or choices of a parameter."""
        return self._specs[name][1] if name in self._specs else default

    def get_random_parameter_values(self, num: int, rng: random.Random | None = None) -> list[dict[str, Any]]:
        """Draw `num` sets of parameters; in a search, from the randomness that its seed gives."""
        return self._own.get_random_parameter_values(num, rng or self._rng)

    @classmethod
    def of(cls, space: Space) -> Searchspace:
        """Return a space of ours under Maggy's names."""
        made = cls()
        made._own = space
        for name, parameter in space.parameters.items():
            is_range = parameter.is_range
            made._specs[name] = (
                parameter.type,
                [parameter.low, parameter.high] if is_range else list(parameter.values),
            )
        return made

    def seeded(self, seed: int) -> Searchspace:
        """Return the same space with a source of randomness of its own."""
        other = Searchspace.of(self._own)
        other._specs = dict(self._specs)
        other._rng = random.Random(seed)
        return other

    def items(self) -> Iterator[dict[str, Any]]:
        """Return each parameter as a dict with `name`, `type` and `values`, in the order in which they were added."""
        return iter(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter([{"name": name, "type": kind, "values": values} for name, (kind, values) in self._specs.items()])

    def keys(self) -> list[str]:
        """Return the names."""
        return list(self._specs)

    def values(self) -> list[tuple[str, Any]]:
        """Return type, and bounds or choices, of each parameter."""
        return list(self._specs.values())

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def __len__(self) -> int:
        return len(self._specs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Searchspace) and self.values() == other.values() and self.keys() == other.keys()

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.json()

    def json(self) -> str:
        """Return the space as JSON."""
        return json.dumps(self.to_dict(), sort_keys=True)

    def transform(self, hparams: Sequence[Any], normalize_categorical: bool = False) -> list[float]:
        """Return the values of one trial as numbers: ranges as a share of their width, choices as an index.

        Args:
            hparams: The values, in the order of the parameters.
            normalize_categorical: Whether the index is a share, too.
        """
        return [
            _to_number(kind, values, value, normalize=normalize_categorical)
            for value, (kind, values) in zip(hparams, self._specs.values(), strict=True)
        ]

    def inverse_transform(self, transformed_hparams: Sequence[float], normalize_categorical: bool = False) -> list[Any]:
        """Return the values that `transform` made numbers of."""
        return [
            _from_number(kind, values, float(number), normalize=normalize_categorical)
            for number, (kind, values) in zip(transformed_hparams, self._specs.values(), strict=True)
        ]

    @staticmethod
    def dict_to_list(hparams: dict[str, Any]) -> list[Any]:
        """Return the values of a set of parameters."""
        return list(hparams.values())

    def list_to_dict(self, hparams: Sequence[Any]) -> dict[str, Any]:
        """Return values in the order of the parameters by name."""
        return dict(zip(self._specs, hparams, strict=True))


def _read(name: str, value: Any) -> tuple[str, list[Any]]:
    if not isinstance(value, tuple | list):
        raise SpaceError(f"{name}: {value!r} is not an appropriate tuple; give (type, list), as ('DOUBLE', [0, 1]).")
    if len(value) != 2:
        raise SpaceError(f"Hyperparameter tuple has to be of length two, (type, list): {name} was given {value!r}.")
    kind, values = str(value[0]).upper(), value[1]
    if kind not in _TYPES:
        hint = nearest(kind, _TYPES)
        raise SpaceError(
            f"Hyperparameter type is not of type {', '.join(_TYPES)}: {name} was given {value[0]!r}.{hint}"
        )
    if not isinstance(values, Sequence) or isinstance(values, str):
        values = list(values) if hasattr(values, "__iter__") and not isinstance(values, str) else [values]
    if len(values) == 0:
        raise SpaceError(f"Hyperparameter feasible region list cannot be empty: {name}.")
    if kind in _RANGES:
        _check_bounds(name, kind, values)
    return kind, list(values)


def _check_bounds(name: str, kind: str, values: Sequence[Any]) -> None:
    if len(values) != 2:
        raise BoundsError(
            f"For DOUBLE or INTEGER give a lower and an upper bound and no more: {name} was given {values!r}."
        )
    allowed = (int,) if kind == "INTEGER" else (int, float)
    if any(type(bound) not in allowed for bound in values):
        needed = "need to be integer" if kind == "INTEGER" else "need to be integer or float"
        raise SpaceError(f"Hyperparameter boundaries for type {kind} {needed}: {name} was given {values!r}.")
    if not values[0] < values[1]:
        raise BoundsError(f"Lower bound {values[0]!r} must be less than upper bound {values[1]!r}: {name}.")


def _translate(kind: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return a parameter as our own spaces write it: choices once each, and numbers only if all of them are."""
    if kind in _RANGES:
        return kind, list(values)
    choices = [value for index, value in enumerate(values) if value not in values[:index]]
    numbers = all(type(value) in (int, float) for value in choices)
    return (kind if numbers else "CATEGORICAL"), choices


def _to_number(kind: str, values: Sequence[Any], value: Any, *, normalize: bool) -> float:
    if kind in _RANGES:
        low, high = values
        return float((value - low) / (high - low))
    index = list(values).index(value)
    return index / max(1, len(values) - 1) if normalize else index


def _from_number(kind: str, values: Sequence[Any], number: float, *, normalize: bool) -> Any:
    if kind in _RANGES:
        low, high = values
        value = number * (high - low) + low
        return round(value) if kind == "INTEGER" else value
    return values[round(number * (len(values) - 1) if normalize else number)]
