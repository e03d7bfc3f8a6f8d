"""Joins that are spelt out: which rows, which columns of which groups, compared by which columns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cargobike.core.errors import InvalidInputError
from cargobike.features.queries.planning import Lookup, Plan
from cargobike.features.queries.query import Condition, Query
from cargobike.features.reading import ReadGroup


@dataclass(frozen=True, slots=True)
class Join:
    """A group that values are looked up in.

    Attributes:
        group: The group.
        on: The columns of the rows that its key is compared with, in the order of the key.
        columns: Its columns, by what they are called in the result.
        required: Whether rows without a partner are left out; otherwise they have nulls.
    """

    group: ReadGroup
    on: tuple[str, ...]
    columns: Mapping[str, str]
    required: bool = False


def join_groups(
    rows: ReadGroup,
    columns: Mapping[str, str],
    joins: Sequence[Join],
    *,
    output: Sequence[str],
    where: Sequence[str] = (),
    commits: Mapping[str, int] | None = None,
) -> Query:
    """Return a query whose rows are those of a group, with values of others, right in time.

    Args:
        rows: The group.
        columns: Its columns, by what they are called in the result.
        joins: What is looked up for each row.
        output: Names of the columns of the result, in order; others can be named by conditions.
        where: Conditions as SQL writes them.
        commits: The commit at which groups are read; by default the newest.

    Raises:
        InvalidInputError: If a group is not compared by its key, or is joined twice.
    """
    there = {*rows.definition.key, rows.definition.event_time, *rows.definition.features}
    mistakes = []
    for join in joins:
        key = join.group.definition.key
        if len(join.on) != len(key):
            mistakes.append(f"{join.group.name} is found by {' and '.join(key)}; {' and '.join(join.on)} was given.")
        mistakes += [f"{rows.name} has no column {name!r} to find {join.group.name} by." for name in {*join.on} - there]
    names = [rows.name, *(join.group.name for join in joins)]
    mistakes += [f"{name} is joined twice." for name in dict.fromkeys(names) if names.count(name) > 1]
    if mistakes:
        raise InvalidInputError("These groups cannot be joined like this:", mistakes)
    lookups, conditions = [], list(where)
    for number, join in enumerate(joins):
        wanted = dict(join.columns)
        if join.required:
            wanted[f"__there{number}"] = join.group.definition.key[0]
            conditions.append(f"__there{number} IS NOT NULL")
        lookups.append(Lookup(join.group, join.on, wanted))
    timed = any(join.group.definition.event_time for join in joins)
    event_time = rows.definition.event_time
    plan = Plan(
        rows,
        dict(columns),
        event_time,
        time.time_ns() // 1000 if timed and not event_time else None,
        tuple(lookups),
        tuple(output),
    )
    return Query(plan, steps=tuple(Condition(text) for text in conditions), commits=commits)
