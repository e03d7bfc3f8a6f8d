"""Transformations of features: fitted on the training part, then the same everywhere.

Each takes and gives arrays, one value for each row, also for a single look-up: there is one code for training and
serving. Numbers are doubles with NaN for nulls, everything else is an array of objects with `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.features.views.functions import Function

State = dict[str, Any]
Arrays = dict[str, np.ndarray]


class Transformation(NamedTuple):
    """How to learn a state from the training part, and how to apply it: one column becomes those of `names`."""

    fit: Callable[[np.ndarray], State]
    apply: Callable[[str, np.ndarray, State], Arrays]
    names: Callable[[str, State], list[str]] = lambda name, state: [name]


def transformation_of(name: str, functions: Mapping[str, Function], what: str) -> Transformation:
    """Return what is done to a feature: one of ours, or a function of a user, which needs no fitting.

    Args:
        name: The feature.
        functions: The functions of users, by feature.
        what: The name of the transformation.
    """
    if name in functions:
        return Transformation(
            lambda values: {}, lambda column, values, state: {column: _called(functions[name], values)}
        )
    return TRANSFORMATIONS[what]


def check_transformations(given: Mapping[str, object], features: Mapping[str, str]) -> None:
    """Refuse transformations that are unknown, or of features that the view does not have.

    Raises:
        InvalidInputError: Listing all mistakes.
    """
    mistakes = [
        f"{name!r} is no feature of the view.{nearest(name, features)}" for name in given if name not in features
    ]
    mistakes += [
        f"{what!r}, for {name!r}, is no transformation; there are {', '.join(TRANSFORMATIONS)}, and functions."
        + nearest(str(what), TRANSFORMATIONS)
        for name, what in given.items()
        if not callable(what) and what not in TRANSFORMATIONS
    ]
    mistakes += [
        f"{name!r} holds {features[name]}, which cannot be scaled; use 'ordinal' or 'one_hot'."
        for name, what in given.items()
        if what in {"standardize", "min_max"} and name in features and not is_numeric(features[name])
    ]
    if mistakes:
        raise InvalidInputError("These transformations cannot be used:", mistakes)


def is_numeric(kind: str) -> bool:
    """Tell whether a type of Arrow, as text, holds numbers."""
    return kind == "bool" or kind.startswith(("int", "uint", "float", "double", "halffloat", "decimal"))


def as_array(values: pa.ChunkedArray) -> np.ndarray:
    """Return a column as transformations see it."""
    if is_numeric(str(values.type)):
        return np.asarray(pc.cast(values, pa.float64()).to_numpy())
    array = np.empty(len(values), dtype=object)
    array[:] = values.to_pylist()
    return array


def one_value(value: Any, kind: str) -> np.ndarray:
    """Return a value of a look-up as transformations see it."""
    if is_numeric(kind):
        return np.array([np.nan if value is None else value], dtype=np.float64)
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


def fit_all(made: Mapping[str, Transformation], table: pa.Table) -> dict[str, State]:
    """Fit transformations on the rows of a table."""
    return {name: each.fit(as_array(table[name])) for name, each in made.items()}


def apply_all(made: Mapping[str, Transformation], states: Mapping[str, State], table: pa.Table) -> pa.Table:
    """Return a table with transformed columns, in the places of those that they were made from."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        if name in made:
            found = made[name].apply(name, as_array(table[name]), states[name])
            columns.update({column: as_column(values) for column, values in found.items()})
        else:
            columns[name] = table[name]
    return pa.table(columns)


def as_column(values: np.ndarray) -> pa.Array:
    """Return an array as a column; NaN is null."""
    return pa.array(values, from_pandas=True)


def _called(function: Function, values: np.ndarray) -> np.ndarray:
    found = np.asarray(function(values))
    if found.shape[:1] != values.shape[:1]:
        raise InvalidInputError(
            f"{function.__qualname__} was given {len(values)} values and returned {found.shape}; it must return one "
            "for each."
        )
    return found


def _present(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[~np.isnan(values)])


def _fit_mean(values: np.ndarray) -> State:
    there = _present(values)
    if not len(there):
        return {"mean": 0.0, "std": 1.0}
    return {"mean": float(there.mean()), "std": float(there.std()) or 1.0}


def _fit_range(values: np.ndarray) -> State:
    there = _present(values)
    low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
    return {"min": low, "range": (high - low) or 1.0}


def _fit_categories(values: np.ndarray) -> State:
    there = {_category(value) for value in values.tolist()}
    return {"categories": sorted(there - {None}, key=lambda value: (str(type(value)), value))}


def _category(value: Any) -> Any:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    return value if isinstance(value, str | float | bool | int) else str(value)


def _ordinal(name: str, values: np.ndarray, state: State) -> Arrays:
    numbers = {category: number for number, category in enumerate(state["categories"])}
    found = [numbers.get(_category(value), -1) for value in values.tolist()]
    return {name: np.array(found, dtype=np.int64)}


def _one_hot(name: str, values: np.ndarray, state: State) -> Arrays:
    numbers = _ordinal(name, values, state)[name]
    columns = enumerate(_one_hot_names(name, state))
    return {column: (numbers == number).astype(np.float64) for number, column in columns}


def _one_hot_names(name: str, state: State) -> list[str]:
    return [f"{name}_{category}" for category in state["categories"]]


TRANSFORMATIONS: Final[dict[str, Transformation]] = {
    "standardize": Transformation(_fit_mean, lambda name, values, s: {name: (values - s["mean"]) / s["std"]}),
    "min_max": Transformation(_fit_range, lambda name, values, s: {name: (values - s["min"]) / s["range"]}),
    "ordinal": Transformation(_fit_categories, _ordinal),
    "one_hot": Transformation(_fit_categories, _one_hot, _one_hot_names),
}
"""By name: mean 0 and deviation 1; from 0 to 1; the number of a category, -1 for others; a column for each category."""


def plain_value(values: np.ndarray) -> Any:
    """Return the one value of an array as Python has it; NaN is `None`."""
    value = values[0]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and np.isnan(value) else cast("Any", value)
