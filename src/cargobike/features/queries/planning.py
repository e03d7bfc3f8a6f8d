"""Decide how features are joined: what the rows are, by which keys, at which times."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.dataset as ds

from cargobike.core.errors import InvalidInputError
from cargobike.features.definition import Definition
from cargobike.features.joining.side import Side
from cargobike.features.queries.names import Owned
from cargobike.features.reading import ReadGroup

KNOWN_BY_COMMIT = "commit"


def rows_of(group: ReadGroup, commit: int | None) -> ds.Dataset:
    """Return the rows of a group after a commit, by default the newest.

    Raises:
        InvalidInputError: If nothing was ever inserted, so that not even the types of its columns are known.
    """
    rows = group.dataset(commit if commit is None or commit >= 0 else None)
    if not set(_columns(group.definition)) <= set(rows.schema.names):
        raise InvalidInputError(f"The group {group.name} has no rows yet; insert some with group.insert(…).")
    return rows


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is looked up in one group.

    Attributes:
        group: The group.
        on: The columns of the rows that its keys are compared with.
        columns: What its features are called in the result.
    """

    group: ReadGroup
    on: tuple[str, ...]
    columns: dict[str, str]

    def side(self, commit: int | None, known_at: str = "") -> Side:
        """Return it as one side of a join, as the group was after a commit."""
        definition = self.group.definition
        rows = rows_of(self.group, commit)
        side = Side(
            name=self.group.name,
            rows=rows,
            key=definition.key,
            on=self.on,
            event_time=definition.event_time,
            columns=self.columns,
            ttl_us=None if definition.ttl_s is None else round(definition.ttl_s * 1e6),
        )
        return side.knowing(known_at) if known_at else side


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is answered.

    Attributes:
        rows: The group whose rows are the rows of the result; `None` if they were given.
        own: Columns of these rows by the names that they get, if they are those of a group.
        time: The column that says at which time each row is joined; empty if nothing has a time.
        now_us: The time of all rows, in microseconds since 1970, if they have none and what is joined has.
        lookups: What is looked up for each row.
        output: Names of the columns of the result, in order.
        known_at: Counts only what was known: `commit`, or a column; empty if that does not matter.
        notes: What was inferred, for people.
    """

    rows: ReadGroup | None
    own: dict[str, str]
    time: str
    now_us: int | None
    lookups: tuple[Lookup, ...]
    output: tuple[str, ...]
    known_at: str = ""
    notes: tuple[str, ...] = field(default=())

    def knowing(self, known_at: str) -> Plan:
        """Return the same plan, in which only what was known counts.

        Raises:
            InvalidInputError: If a group has no such column.
        """
        lacking = [
            each.group.name
            for each in self.lookups
            if known_at not in {KNOWN_BY_COMMIT, *_columns(each.group.definition)}
        ]
        if known_at and lacking:
            raise InvalidInputError(
                f"known_at={known_at!r} was given; {', '.join(lacking)} has no such column. Give 'commit' to count "
                "what was written by then, or a column that all of these groups have."
            )
        return replace(self, known_at=known_at)

    @property
    def groups(self) -> tuple[ReadGroup, ...]:
        """All groups that are read."""
        own = () if self.rows is None else (self.rows,)
        return (*own, *(lookup.group for lookup in self.lookups))


def plan_for_labels(owned: Sequence[Owned], schema: pa.Schema, time_column: str = "") -> Plan:
    """Plan look-ups for rows that a user gives.

    Args:
        owned: The features.
        schema: The columns of the rows.
        time_column: The column that says when; by default it is inferred.

    Raises:
        InvalidInputError: If the rows lack a key, or their time cannot be told; lists all mistakes.
    """
    groups = _groups(owned)
    mistakes = [
        f"{group.name} is found by {' and '.join(group.definition.key)}, and the rows have no column {key!r}."
        for group in groups
        for key in group.definition.key
        if key not in schema.names
    ]
    timed = [group for group in groups if group.definition.event_time]
    column, note = "", ""
    if time_column or timed:
        try:
            column, note = _time_of(schema, timed, time_column)
        except InvalidInputError as error:
            mistakes.append(str(error))
    mistakes += [
        f"{each.feature!r} was asked for, and is neither a feature nor a column of the rows."
        for each in owned
        if each.owner is None and each.column not in schema.names
    ]
    if mistakes:
        raise InvalidInputError(f"The rows have the columns {', '.join(schema.names)}, which do not fit:", mistakes)
    lookups = tuple(_lookup(group, group.definition.key, owned) for group in groups)
    output = (*schema.names, *(each.column for each in owned if each.owner is not None))
    return Plan(None, {}, column, None, lookups, output, notes=tuple(filter(None, [note])))


def plan_for_group(owned: Sequence[Owned]) -> Plan:
    """Plan a join of groups with each other: the rows are those of the group that says most about a row.

    Raises:
        InvalidInputError: If the other groups cannot be found from there.
    """
    groups = _groups(owned)
    if not groups:
        raise InvalidInputError("Only keys and times were asked for; name at least one feature.")
    rows = max(groups, key=lambda group: (_reach(group, groups), bool(group.definition.event_time)))
    columns = _columns(rows.definition)
    others = [group for group in groups if group is not rows]
    apart = [group for group in others if not set(group.definition.key) <= set(columns)]
    if apart:
        raise InvalidInputError(
            "These groups share no key, so their rows cannot be joined. Give rows with all these keys: "
            "get_features([…], labels=rows).",
            [f"{group.name} is found by {' and '.join(group.definition.key)}." for group in [rows, *apart]],
        )
    unknown = [each.feature for each in owned if each.owner is None and each.feature not in columns]
    if unknown:
        raise InvalidInputError(f"{rows.name}, whose rows these are, has no column {', '.join(unknown)}.")
    event_time = rows.definition.event_time
    timed = [group for group in others if group.definition.event_time]
    now_us = None if event_time or not timed else time.time_ns() // 1000
    notes = [f"Each row of {rows.name} is a row of the result."] if others else []
    if now_us is not None:
        notes.append(f"{rows.name} has no event time, so what is joined is what is true now.")
    return Plan(
        rows,
        {each.column: each.feature for each in owned if each.owner in (None, rows)},
        event_time,
        now_us,
        tuple(_lookup(group, group.definition.key, owned) for group in others),
        tuple(each.column for each in owned),
        notes=tuple(notes),
    )


def _groups(owned: Sequence[Owned]) -> list[ReadGroup]:
    groups = {each.owner.name: each.owner for each in owned if each.owner is not None}
    return list(groups.values())


def _reach(group: ReadGroup, groups: Sequence[ReadGroup]) -> int:
    """Return how many groups can be found from the rows of one."""
    columns = set(_columns(group.definition))
    return sum(set(other.definition.key) <= columns for other in groups)


def _lookup(group: ReadGroup, on: tuple[str, ...], owned: Sequence[Owned]) -> Lookup:
    return Lookup(group, on, {each.column: each.feature for each in owned if each.owner is group})


def _columns(definition: Definition) -> tuple[str, ...]:
    return (*definition.key, *((definition.event_time,) if definition.event_time else ()), *definition.features)


def _time_of(schema: pa.Schema, timed: Sequence[ReadGroup], given: str) -> tuple[str, str]:
    """Return the column that says when a row is, and how it was chosen."""
    if given:
        if given not in schema.names:
            raise InvalidInputError(f"time={given!r} was given, and the rows have no such column.")
        return given, ""
    same = {group.definition.event_time for group in timed}
    if len(same) == 1 and (name := same.pop()) in schema.names:
        return name, f"The time of a row is {name!r}, as in the groups."
    times = [each.name for each in schema if pa.types.is_timestamp(each.type) or pa.types.is_date(each.type)]
    if len(times) == 1:
        return times[0], f"The time of a row is {times[0]!r}, its only column with times."
    wanted = f"; it may be {' or '.join(map(repr, times))}" if times else ""
    owners = ", ".join(group.name for group in timed)
    raise InvalidInputError(f"Which column says when a row is? {owners} changes with time{wanted}. Give time='column'.")
