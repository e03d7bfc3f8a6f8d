"""Expectations: what must be true of rows before they are written, as words that are kept, and how they are checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.values.numbers import describe
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.features.definition import Definition, Expectation
from cargobike.features.hashing import hash_values

Check = Expectation | Callable[[pa.Table], Any]
"""An expectation, or a function from rows to one truth for each row, or to one for all."""

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def not_null(column: str) -> Expectation:
    """Expect that no value of a column is null.

    Example:
        >>> not_null("budget").kind
        'not_null'
    """
    return Expectation(kind="not_null", column=column)


def between(column: str, low: float | None = None, high: float | None = None) -> Expectation:
    """Expect that all values of a column lie between two numbers, both included; nulls and NaN are let through."""
    if low is None and high is None:
        raise InvalidInputError(f"between({column!r}) has no limit; give low, high, or both.")
    if low is not None and high is not None and not low <= high:
        raise InvalidInputError(f"between({column!r}, {low}, {high}) allows no value; the first must be the lower one.")
    return Expectation(kind="between", column=column, low=low, high=high)


def one_of(column: str, values: Sequence[str | int | float | bool]) -> Expectation:
    """Expect that all values of a column are among some; nulls are let through."""
    if isinstance(values, str) or not len(values):
        raise InvalidInputError(f"one_of({column!r}) needs a list of values, {describe(values)} was given.")
    return Expectation(kind="one_of", column=column, values=tuple(values))


def unique(column: str) -> Expectation:
    """Expect that no value of a column occurs twice in one insert; nulls are let through."""
    return Expectation(kind="unique", column=column)


def fresh(max_age: Seconds) -> Expectation:
    """Expect that the newest event time of an insert is at most so old, such as `"1d"`."""
    return Expectation(kind="fresh", max_age_s=read_seconds("max_age", max_age))


def check_expectations(expectations: Sequence[Any], definition: Definition, columns: Sequence[str]) -> None:
    """Refuse expectations that can never be checked.

    Args:
        expectations: What was given.
        definition: The group that they are about.
        columns: The columns of the group; empty if they are not known yet.

    Raises:
        InvalidInputError: Lists all of them.
    """
    mistakes = []
    for one in expectations:
        if not isinstance(one, Expectation) and not callable(one):
            mistakes.append(
                f"{describe(one)} is no expectation; write features.not_null('budget'), between, one_of, unique, "
                "fresh, or a function of the rows"
            )
        elif isinstance(one, Expectation) and one.kind not in _CHECKS and one.kind != "fresh":
            mistakes.append(f"{one.kind!r} is no kind of expectation.{nearest(one.kind, [*_CHECKS, 'fresh'])}")
        elif isinstance(one, Expectation) and one.column and columns and one.column not in columns:
            mistakes.append(f"{words_of(one)}: there is no column {one.column!r}.{nearest(one.column, columns)}")
        elif isinstance(one, Expectation) and one.kind == "fresh" and not definition.event_time:
            mistakes.append(f"{words_of(one)}: the group has no event time")
    if mistakes:
        raise InvalidInputError(f"Some expectations of the group {definition.name!r} cannot be used.", mistakes)


def broken(rows: pa.Table, expectations: Sequence[Check], definition: Definition) -> tuple[dict[str, Mask], list[str]]:
    """Return, by expectation, which rows break it; and the expectations that the rows break as a whole."""
    masks: dict[str, Mask] = {}
    whole: list[str] = []
    for one in expectations:
        if isinstance(one, Expectation) and one.kind == "fresh":
            whole += _stale(rows, one, definition)
        elif isinstance(one, Expectation):
            good = _CHECKS[one.kind](rows.column(one.column), one)
            if not good.all():
                masks[words_of(one)] = ~good
        else:
            name = getattr(one, "__name__", type(one).__name__)
            good_rows = _answer(one, rows, name)
            if isinstance(good_rows, bool):
                whole += [] if good_rows else [f"{name} says no"]
            elif not good_rows.all():
                masks[f"{name} says no"] = ~good_rows
    return masks, whole


def words_of(expectation: Expectation) -> str:
    """Return an expectation as a user would write it.

    Example:
        >>> words_of(between("budget", 0))
        "between('budget', 0, None)"
    """
    column = repr(expectation.column)
    if expectation.kind == "between":
        return f"between({column}, {expectation.low}, {expectation.high})"
    if expectation.kind == "one_of":
        shown = ", ".join(map(repr, expectation.values[:5])) + (", …" if len(expectation.values) > 5 else "")
        return f"one_of({column}, [{shown}])"
    if expectation.kind == "fresh":
        return f"fresh({expectation.max_age_s:g} s)"
    return f"{expectation.kind}({column})"


def _not_null(column: Any, _: Expectation) -> Mask:
    return _mask(pc.is_valid(column))


def _between(column: Any, expectation: Expectation) -> Mask:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)):
        raise InvalidInputError(f"{words_of(expectation)}: {expectation.column!r} is {column.type}, not a number.")
    values = column.cast(pa.float64(), safe=False)
    good = pa.repeat(pa.scalar(True), len(column))
    if expectation.low is not None:
        good = pc.and_(good, pc.fill_null(pc.greater_equal(values, expectation.low), True))
    if expectation.high is not None:
        good = pc.and_(good, pc.fill_null(pc.less_equal(values, expectation.high), True))
    return _mask(pc.or_(good, pc.fill_null(pc.is_nan(values), True)))


def _one_of(column: Any, expectation: Expectation) -> Mask:
    try:
        allowed = pa.array(list(expectation.values)).cast(column.type)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"{words_of(expectation)}: {expectation.column!r} is {column.type}, and not all of these values are."
        ) from error
    return _mask(pc.or_(pc.is_in(column, value_set=allowed), pc.is_null(column)))


def _unique(column: Any, _: Expectation) -> Mask:
    hashes = hash_values(column)
    order = np.argsort(hashes, kind="stable")
    again = np.zeros(len(hashes), dtype=bool)
    again[order[1:]] = hashes[order][1:] == hashes[order][:-1]
    return ~again | _mask(pc.is_null(column))


_CHECKS: dict[str, Callable[[Any, Expectation], Mask]] = {
    "not_null": _not_null,
    "between": _between,
    "one_of": _one_of,
    "unique": _unique,
}


def _stale(rows: pa.Table, expectation: Expectation, definition: Definition) -> list[str]:
    newest = pc.max(rows.column(definition.event_time)).as_py() if rows.num_rows else None
    if newest is None or expectation.max_age_s is None:
        return []
    age_s = time.time() - newest.timestamp()
    if age_s <= expectation.max_age_s:
        return []
    return [f"{words_of(expectation)}: the newest event time is {newest:%Y-%m-%d %H:%M UTC}, {age_s:.0f} s ago"]


def _answer(function: Callable[[pa.Table], Any], rows: pa.Table, name: str) -> Mask | bool:
    answer = function(rows)
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    if isinstance(answer, pa.Array | pa.ChunkedArray):
        answer = pc.fill_null(answer, False).to_pylist()
    good = np.asarray(answer)
    if good.dtype != np.bool_ or good.shape != (rows.num_rows,):
        raise InvalidInputError(
            f"The expectation {name} returned {describe(answer)}; it must return True or False for all rows together, "
            f"or one of them for each of the {rows.num_rows} rows."
        )
    return good


def _mask(column: Any) -> Mask:
    return np.asarray(
        column.to_pylist()
        if not len(column)
        else column.to_numpy(zero_copy_only=False)
        if isinstance(column, pa.Array)
        else column.to_numpy(),
        dtype=bool,
    )
