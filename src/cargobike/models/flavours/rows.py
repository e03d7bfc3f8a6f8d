"""Rows as models of libraries want them: stacked into arrays, once for each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.values.words import count

Stacked = np.ndarray[Any, Any] | dict[str, np.ndarray[Any, Any]]
"""One array, or one for each field; the first axis is the rows."""


def stack(rows: Sequence[Any], floats: str = "", *, whole_as_floats: bool = False) -> Stacked:
    """Stack rows.

    Args:
        rows: Bare values, or dicts by name.
        floats: What floating-point numbers become; unchanged if empty.
        whole_as_floats: Whether whole numbers become that too.

    Raises:
        PredictionError: If rows differ in shape or type; names the first that does not fit.
    """
    if len(rows) and isinstance(rows[0], Mapping):
        return {
            str(name): _stack([_take(row, name, number) for number, row in enumerate(rows)], floats, whole_as_floats)
            for name in rows[0]
        }
    return _stack(rows, floats, whole_as_floats)


def rows_of(example: Any) -> list[Any]:
    """Return what a user gave as example as rows of plain values.

    Args:
        example: A list of rows, an array or tensor whose first axis is the rows, a DataFrame, or a dict of columns.

    Raises:
        InvalidInputError: If it is none of that, or has no rows.
    """
    if hasattr(example, "to_dict") and hasattr(example, "columns"):
        example = {str(name): example[name].tolist() for name in example.columns}
    if isinstance(example, Mapping):
        columns = {str(name): rows_of(column) for name, column in example.items()}
        if len({len(column) for column in columns.values()}) != 1:
            sizes = ", ".join(f"{name!r} has {count(len(column), 'row')}" for name, column in columns.items())
            raise InvalidInputError(f"The columns of the example differ in length: {sizes or 'there are none'}.")
        if len(columns) == 1:
            return next(iter(columns.values()))
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if hasattr(example, "detach"):
        example = example.detach().cpu()
    if hasattr(example, "tolist"):
        example = example.tolist()
    if not isinstance(example, Sequence) or isinstance(example, str | bytes) or not len(example):
        raise InvalidInputError(
            f"example={example!r} holds no rows; give a list of rows, an array whose first axis is the rows, a "
            "DataFrame or a dict of columns: example=[[0.1, 0.2], [0.3, 0.4]]."
        )
    return [_plain(row) for row in example]


def first_misfit(rows: Sequence[Any]) -> str:
    """Say which is the first row that cannot be stacked onto the one before it; nothing if all can."""
    shape: tuple[int, ...] | None = None
    for number, row in enumerate(rows):
        try:
            array = np.asarray(row)
        except ValueError:
            return f"row {number} holds lists of different lengths"
        if array.dtype.kind == "O" and not _holds_only_numbers(row):
            return f"row {number} holds what is no number or text: {_short(row)}"
        if shape is not None and array.shape != shape:
            return f"row {number} has the shape {list(array.shape)}, and those before it have {list(shape)}"
        shape = array.shape
    return ""


def _stack(values: Sequence[Any], floats: str, whole_as_floats: bool) -> np.ndarray[Any, Any]:
    try:
        array: np.ndarray[Any, Any] = np.asarray(values)
    except ValueError as error:
        raise PredictionError(f"{first_misfit(values) or error}. All rows of a model have one shape.") from error
    kind = array.dtype.kind
    if kind == "O":
        array, kind = _with_missing(values, array), "f"
    if floats and (kind == "f" or (whole_as_floats and kind in "biu")):
        return array.astype(floats, copy=False)
    return array


def _with_missing(values: Sequence[Any], array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers with NaN for those that are missing; texts with missing ones stay as they are."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        if all(value is None or isinstance(value, str) for value in values):
            return array
    raise PredictionError(f"{first_misfit(values) or 'rows hold numbers and texts'}. A model takes one kind of value.")


def _take(row: Any, name: Any, number: int) -> Any:
    try:
        return row[name]
    except (KeyError, TypeError, IndexError):
        raise PredictionError(f"row {number} has no field {name!r}, which the first row has.") from None


def _holds_only_numbers(row: Any) -> bool:
    if isinstance(row, list | tuple):
        return all(map(_holds_only_numbers, row))
    return row is None or isinstance(row, int | float | str | np.number | np.ndarray)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
