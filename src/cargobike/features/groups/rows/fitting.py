"""Make rows that were given fit a group: its columns, their types, its keys and times; all mistakes at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.features.definition import WRITTEN_AT, Definition
from cargobike.features.delta.schemas import TIME, TYPE_NAMES, kept_as, type_of

SKEW_S: Final = 300.0
"""How far an event time may lie ahead of this machine's clock: clocks differ."""

KEY_KINDS: Final = "whole numbers, texts, bytes, dates, times or booleans"


@dataclass(frozen=True, slots=True)
class Columns:
    """What to do with columns that differ from those of the group."""

    new: Literal["refuse", "add"] = "refuse"
    missing: Literal["refuse", "null"] = "refuse"


def kept_types(table: pa.Table, definition: Definition, columns: Columns) -> dict[str, Any]:
    """Return the types as which the columns of rows will be kept, those of the group first.

    Raises:
        InvalidInputError: If columns are missing, new without being asked for, or of types that do not fit.
    """
    mistakes: list[str] = []
    types: dict[str, Any] = {}
    is_first = not definition.key_types
    own = {name: type_of(kind) for name, kind in zip(definition.key, definition.key_types, strict=False)}
    own.update({name: type_of(kind) for name, kind in definition.features.items()})
    must = [*definition.key, *([definition.event_time] if definition.event_time else [])]
    for name in must:
        if name not in table.column_names:
            what = "the event time" if name == definition.event_time else "of the key"
            mistakes.append(f"the column {name!r} ({what}) is missing.{nearest(name, table.column_names)}")
    absent = [name for name in definition.features if name not in table.column_names]
    if absent and columns.missing == "refuse":
        mistakes.append(
            f"the features {', '.join(map(repr, absent))} are missing; give them, or say "
            'insert(…, missing_columns="null") to have nulls there'
        )
    fresh = [name for name in table.column_names if name not in own and name not in must]
    if WRITTEN_AT in fresh:
        fresh.remove(WRITTEN_AT)
        mistakes.append(f"the column {WRITTEN_AT!r} is set by the group; leave it out")
    if fresh and not (is_first and not definition.features) and columns.new == "refuse":
        shown = ", ".join(f"{name!r} ({table.schema.field(name).type})" for name in fresh)
        close = nearest(fresh[0], absent) if absent else ""
        mistakes.append(
            f'the columns {shown} are new; say insert(…, new_columns="add") to add them to the group (rows that are '
            f"there get nulls), or leave them out.{close}"
        )
    for name in table.column_names:
        if name == definition.event_time:
            mistakes += _time_mistakes(table.schema.field(name))
        elif name in own:
            types[name] = own[name]
        elif name != WRITTEN_AT and (name in must or name in fresh):
            kind = table.schema.field(name).type
            kept = pa.string() if pa.types.is_null(kind) and name in fresh else kept_as(kind)
            if kept is None:
                mistakes.append(f"{name!r} is {kind}; groups hold {', '.join(TYPE_NAMES)}: cast it, or leave it out")
            elif name in definition.key and not is_key_type(kept):
                mistakes.append(f"{name!r} is {kind}; a key has {KEY_KINDS}: cast it")
            elif pa.types.is_null(kind):
                mistakes.append(
                    f"{name!r} has nothing but nulls, so that its type is unknown; cast it, or leave it out"
                )
            else:
                types[name] = kept
    _raise(definition, mistakes)
    return types


def is_key_type(kind: Any) -> bool:
    """Tell whether values of a type can be told apart exactly."""
    types = pa.types
    tests = (types.is_integer, types.is_string, types.is_binary, types.is_date, types.is_timestamp, types.is_boolean)
    return any(test(kind) for test in tests)


def fit(table: pa.Table, definition: Definition, schema: pa.Schema, now_us: int | None = None) -> pa.Table:
    """Return rows with exactly the columns of a group; columns that they lack are null.

    Args:
        table: The rows.
        definition: The group.
        schema: Its columns.
        now_us: When they are written, in microseconds since 1970; by default now.

    Raises:
        InvalidInputError: If values do not fit the types of the group.
    """
    arrays, mistakes = [], []
    for field in schema:
        if field.name == WRITTEN_AT:
            now = pa.scalar(time.time_ns() // 1000 if now_us is None else now_us, pa.int64()).cast(TIME)
            arrays.append(pa.repeat(now, table.num_rows))
        elif field.name not in table.column_names:
            arrays.append(pa.nulls(table.num_rows, field.type))
        else:
            column = table.column(field.name)
            try:
                arrays.append(as_time(column) if field.name == definition.event_time else cast(column, field.type))
            except (pa.ArrowException, ValueError) as error:
                said = " ".join(str(error).split())[:200]
                mistakes.append(
                    f"{field.name!r} is {field.type} in the group and {column.type} here: {said}. Cast it, or make a "
                    f"new version of the group with the other type: create_group({definition.name!r}, "
                    f"version={definition.version + 1}, …)"
                )
                arrays.append(pa.nulls(table.num_rows, field.type))
    _raise(definition, mistakes)
    return pa.table(arrays, schema=schema)


def cast(column: Any, kind: Any) -> Any:
    """Return a column as another type of the same sort, refusing values that would change.

    Raises:
        ValueError: If the types are not of one sort, or values would change.
    """
    source = column.type
    if pa.types.is_dictionary(source):
        column, source = column.cast(source.value_type), source.value_type
    if source == kind:
        return column
    if pa.types.is_null(source):
        return pa.nulls(len(column), kind)
    if pa.types.is_timestamp(kind):
        return as_time(column)
    if pa.types.is_floating(source) and pa.types.is_floating(kind):
        return column.cast(kind, safe=False)  # the group says how exact its numbers are
    if _sort(source) != _sort(kind) or _sort(source) == "other":
        raise ValueError("values of one are not values of the other")
    return column.cast(kind)


def as_time(column: Any) -> Any:
    """Return times in UTC, in microseconds; times without a zone are taken to be UTC."""
    source = column.type
    if pa.types.is_date(source):
        return column.cast(pa.date32()).cast(pa.timestamp("us")).cast(TIME)
    if pa.types.is_timestamp(source):
        if source.tz is None:
            return column.cast(pa.timestamp("us"), safe=False).cast(TIME)
        return column.cast(TIME, safe=False)
    if pa.types.is_null(source):
        return pa.nulls(len(column), TIME)
    if _sort(source) == "text":
        return _of_text(column)
    raise ValueError("values of one are not values of the other")


def _of_text(column: Any) -> Any:
    """Return the times that texts name as ISO 8601 does; files of text have no other way to say them."""
    try:
        return column.cast(pa.timestamp("us", tz="UTC"))  # refuses texts without a zone
    except pa.ArrowInvalid:
        pass
    try:
        return column.cast(pa.timestamp("us")).cast(TIME)  # refuses texts with one
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"not all texts are times like 2026-05-01T12:00:00Z, all with a zone or all without: {error}"
        ) from error


def bad_rows(rows: pa.Table, definition: Definition, now_s: float) -> dict[str, Any]:
    """Return, by reason, masks of the rows without a key or event time, and of those whose event time lies ahead."""
    masks: dict[str, Any] = {}
    for name in definition.key:
        if rows.column(name).null_count:
            masks[f"the key {name!r} is null"] = pc.is_null(rows.column(name))
    if definition.event_time:
        times = rows.column(definition.event_time)
        if times.null_count:
            masks[f"the event time {definition.event_time!r} is null"] = pc.is_null(times)
        if not definition.allow_future:
            limit = pa.scalar(int((now_s + SKEW_S) * 1e6), pa.int64()).cast(TIME)
            ahead = pc.fill_null(pc.greater(times, limit), False)
            if pc.any(ahead).as_py():
                reason = f"the event time {definition.event_time!r} lies in the future (the clock says {_clock(now_s)})"
                masks[reason] = ahead
    return masks


def _clock(now_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now_s))


def _time_mistakes(field: pa.Field) -> list[str]:
    kind = field.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_null(kind) or _sort(kind) == "text":
        return []
    advice = "make times of them: pandas.to_datetime(…, utc=True)"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        advice = "say what the numbers count: pandas.to_datetime(…, unit='s', utc=True)"
    return [f"the event time {field.name!r} is {kind}, and must be a time or a date; {advice}"]


def _sort(kind: Any) -> str:
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind):
        return "number"
    if types.is_decimal(kind):
        return "decimal"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return "text"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "bytes"
    if types.is_date(kind):
        return "date"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list of " + _sort(kind.value_type)
    return "other"


def _raise(definition: Definition, mistakes: list[str]) -> None:
    if mistakes:
        raise InvalidInputError(f"These rows do not fit the group {definition.name!r}; nothing was written.", mistakes)
