"""Ask for features by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cargobike.features.groups.finding import group, list_groups
from cargobike.features.groups.group import Group
from cargobike.features.queries.asking import ask
from cargobike.features.queries.names import versions_named
from cargobike.features.queries.query import Query


def get_features(names: Sequence[str], *, labels: Any = None, time: str = "", known_at: str = "") -> Query:
    """Return features by name, whichever groups own them, joined by their keys and right in time.

    Without `labels`, the rows are those of the group from which all others can be found, and the result has the columns
    that were named. With `labels`, each of their rows is kept, and gets the latest values at or before its time.

    Args:
        names: Such as `average_attendance`; `teams.budget` if several groups have a `budget`, `teams:1.budget` for
            another version than the newest, `teams.*` for all of a group. Keys and event times can be named too.
        labels: Rows to find features for: a pandas, polars or Spark DataFrame, an Arrow table, a dict of columns.
        time: The column of `labels` that says when; by default it is inferred.
        known_at: Count only what was known at the time of a row: `"commit"` for what was written by then, or a column
            that says since when a row was known.

    Returns:
        A query. Nothing is read before it is asked for rows: `.to_pandas()`, `.to_polars()`, `.to_arrow()`,
        `.to_spark()`, `.show()`. `.explain()` says what was inferred.

    Raises:
        InvalidInputError: If a name is unknown or in several groups, or if groups share no key; lists all mistakes.

    Example:
        >>> from cargobike import features
        >>> teams = features.create_group("teams", key="team_id")
        >>> _ = teams.insert({"team_id": [1, 2], "budget": [10.5, 3.0]})
        >>> features.get_features(["team_id", "budget"]).filter("budget > 5").to_arrow().to_pylist()
        [{'team_id': 1, 'budget': 10.5}]
    """
    return ask(names, groups_for(names), labels, time=time, known_at=known_at)


def groups_for(names: Sequence[str]) -> list[Group]:
    """Return the groups of the project in their newest versions, and the versions that names of features say."""
    return [*list_groups(), *(group(name, version) for name, version in versions_named(names))]
