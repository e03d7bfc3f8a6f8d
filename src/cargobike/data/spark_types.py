"""Columns of a Spark DataFrame that Arrow or Parquet cannot hold: turned into what they can, or refused by name."""

from __future__ import annotations

from collections import Counter
from typing import Any

from cargobike.core.errors import InvalidInputError


def for_arrow(frame: Any) -> Any:
    """Return a DataFrame all of whose columns can be written.

    Intervals of years and months become numbers of months; other types stay as Arrow has them: timestamps in
    microseconds, intervals of days and seconds as durations.

    Raises:
        InvalidInputError: If columns cannot be written; lists all of them, and says what to do.
    """
    from pyspark.sql import functions, types  # noqa: PLC0415 - with a Spark DataFrame it is loaded already

    fields = frame.schema.fields
    twice = [name for name, count in Counter(field.name for field in fields).items() if count > 1]
    mistakes = [f"{name!r} is the name of several columns; rename them" for name in twice]
    for field in fields:
        kind = field.dataType
        if _holds(kind, types.CalendarIntervalType) or (
            _holds(kind, types.YearMonthIntervalType) and not isinstance(kind, types.YearMonthIntervalType)
        ):
            mistakes.append(
                f"{field.name!r} is {kind.simpleString()}; make numbers or dates of its intervals, or leave it out"
            )
    if mistakes:
        raise InvalidInputError("Some columns of the data cannot be written.", mistakes)
    if not any(isinstance(field.dataType, types.YearMonthIntervalType) for field in fields):
        return frame
    columns = []
    for field in fields:
        column = frame[f"`{field.name.replace('`', '``')}`"]
        if isinstance(field.dataType, types.YearMonthIntervalType):
            whole = column.cast("interval year to month")
            years, months = (functions.extract(functions.lit(unit), whole) for unit in ("YEAR", "MONTH"))
            column = (years * 12 + months).cast("int").alias(field.name)
        columns.append(column)
    return frame.select(columns)


def _holds(kind: Any, wanted: type) -> bool:
    """Tell whether a type is, or holds somewhere inside, another one."""
    if isinstance(kind, wanted):
        return True
    inner = [getattr(kind, name, None) for name in ("elementType", "keyType", "valueType")]
    inner += [field.dataType for field in getattr(kind, "fields", [])]
    return any(one is not None and _holds(one, wanted) for one in inner)
