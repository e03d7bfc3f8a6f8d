"""Which rows to read. Each predicate takes one row as a dict, or a whole group as a DataFrame of pandas."""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cargobike.core.errors import InvalidInputError


class PredicateBase(ABC):
    """Says of which fields it depends on, and which rows to read."""

    @abstractmethod
    def get_fields(self) -> Iterable[str]:
        """Return the names of the fields that are looked at."""

    @abstractmethod
    def do_include(self, values: Any) -> Any:
        """Tell whether a row is read, from its values by name; for a DataFrame, return this for each of its rows."""


class in_set(PredicateBase):
    """Rows whose value is one of some."""

    def __init__(self, inclusion_values: Iterable[Any], predicate_field: str) -> None:
        self._inclusion_values = set(inclusion_values)
        self._predicate_field = predicate_field

    def get_fields(self) -> set[str]:
        """Return the field's name."""
        return {self._predicate_field}

    def do_include(self, values: Any) -> Any:
        """Tell whether the value is one of them."""
        value = values[self._predicate_field]
        return _each(value, lambda one: one in self._inclusion_values)


class in_intersection(PredicateBase):
    """Rows whose list has at least one of some values."""

    def __init__(self, inclusion_values: Iterable[Any], _predicate_field: str) -> None:
        self._inclusion_values = list(inclusion_values)
        self._predicate_field = _predicate_field

    def get_fields(self) -> set[str]:
        """Return the field's name."""
        return {self._predicate_field}

    def do_include(self, values: Any) -> Any:
        """Tell whether one of them is in the list."""
        return _each(values[self._predicate_field], self._shares)

    def _shares(self, value: Any) -> bool:
        if not isinstance(value, Iterable):
            raise InvalidInputError(
                f"in_intersection looks at lists, and {self._predicate_field!r} holds {type(value).__name__}; "
                "take in_set for single values."
            )
        return bool(np.isin(np.asarray(value), self._inclusion_values).any())


class in_lambda(PredicateBase):
    """Rows for which a function of their fields is true.

    Args:
        predicate_fields: The fields, as a list.
        predicate_func: Called with their values, in order.
        state_arg: If given, the function's last argument.
    """

    def __init__(self, predicate_fields: list[str], predicate_func: Callable[..., Any], state_arg: Any = None) -> None:
        if not isinstance(predicate_fields, list):
            raise InvalidInputError(f"Predicate fields should be a list; {predicate_fields!r:.80} was given.")
        self._predicate_fields = predicate_fields
        self._predicate_func = predicate_func
        self._state_arg = state_arg

    def get_fields(self) -> set[str]:
        """Return the names of the fields."""
        return set(self._predicate_fields)

    def do_include(self, values: Any) -> Any:
        """Return what the function says."""
        args = [values[field] for field in self._predicate_fields]
        return self._predicate_func(*args, *([] if self._state_arg is None else [self._state_arg]))


class in_negate(PredicateBase):
    """Rows that another predicate leaves out."""

    def __init__(self, predicate: PredicateBase) -> None:
        _check([predicate])
        self._predicate = predicate

    def get_fields(self) -> Iterable[str]:
        """Return the other's fields."""
        return self._predicate.get_fields()

    def do_include(self, values: Any) -> Any:
        """Return the contrary."""
        answer = self._predicate.do_include(values)
        return ~np.asarray(answer, bool) if hasattr(answer, "__len__") else not answer


class in_reduce(PredicateBase):
    """Rows of which several predicates together say so.

    Args:
        predicate_list: The predicates.
        reduce_func: Makes one answer of a list of theirs, such as `all` or `any`.
    """

    def __init__(self, predicate_list: Sequence[PredicateBase], reduce_func: Callable[[list[Any]], Any]) -> None:
        _check(predicate_list)
        self._predicate_list = list(predicate_list)
        self._reduce_func = reduce_func

    def get_fields(self) -> set[str]:
        """Return the fields of all."""
        return {field for predicate in self._predicate_list for field in predicate.get_fields()}

    def do_include(self, values: Any) -> Any:
        """Return what their answers come to."""
        answers = [predicate.do_include(values) for predicate in self._predicate_list]
        if answers and hasattr(answers[0], "__len__"):
            return np.array([self._reduce_func(list(each)) for each in zip(*answers, strict=True)], bool)
        return self._reduce_func(answers)


class in_pseudorandom_split(PredicateBase):
    """Rows of one part of a split that depends on a field's value alone, and is always the same.

    Args:
        fraction_list: How large the parts are, each from 0 to 1.
        subset_index: Which part.
        predicate_field: The field.
    """

    def __init__(self, fraction_list: Sequence[float], subset_index: int, predicate_field: str) -> None:
        if subset_index >= len(fraction_list):
            raise InvalidInputError(f"subset_index={subset_index} is out of range of {len(fraction_list)} parts.")
        self._predicate_field = predicate_field
        self._low = sum(fraction_list[:subset_index]) * (sys.maxsize - 1)
        self._high = sum(fraction_list[: subset_index + 1]) * (sys.maxsize - 1)

    def get_fields(self) -> set[str]:
        """Return the field's name."""
        return {self._predicate_field}

    def do_include(self, values: Any) -> Any:
        """Tell whether the value falls into the part."""
        if self._predicate_field not in values:
            raise InvalidInputError(f"The rows have no field {self._predicate_field!r} to split by.")
        return _each(values[self._predicate_field], lambda one: self._low <= _bucket(str(one)) < self._high)


def _bucket(text: str) -> int:
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 16) % sys.maxsize


def _each(value: Any, test: Callable[[Any], bool]) -> Any:
    """Return what a test says of a value, or of each value of a column of a DataFrame."""
    if hasattr(value, "iloc"):
        return np.fromiter((test(one) for one in value), bool, len(value))
    return test(value)


def _check(predicates: Sequence[Any]) -> None:
    odd = [type(each).__name__ for each in predicates if not isinstance(each, PredicateBase)]
    if odd:
        raise InvalidInputError(f"Predicate is not derived from PredicateBase: {', '.join(odd)}.")
