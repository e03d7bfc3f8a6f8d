"""What is watched: a deployment, or a feature group, as a user says it."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import log_keeper
from cargobike.core.registering.steps import Keepable
from cargobike.monitoring.facts import SubjectKind
from cargobike.monitoring.states.making import LEARNED_FROM
from cargobike.monitoring.watching.features import features_of_log

_GROUP: Final = "group"


def read_subject(given: Any) -> tuple[SubjectKind, str]:
    """Return what kind of thing is to be watched, and its name.

    Raises:
        InvalidInputError: If it can be neither.

    Example:
        >>> read_subject("digits"), read_subject("group:teams")
        (('deployment', 'digits'), ('group', 'teams'))
    """
    if isinstance(given, Keepable):
        kept = given.kept_as()
        if kept.kind in {_GROUP, "deployment"}:
            return (_GROUP if kept.kind == _GROUP else "deployment"), kept.id.partition(":")[0]
    if isinstance(given, str) and given:
        kind, colon, name = given.partition(":")
        if not colon:
            return "deployment", given
        if kind == _GROUP and name:
            return _GROUP, name
    raise InvalidInputError(
        f"{given!r} cannot be watched; give the name of a deployment, a feature group, or 'group:NAME'."
    )


def rows_until_now(name: str, project: ProjectFolder) -> pa.Table:
    """Return the newest rows of a group, which those that come are compared with.

    Raises:
        InvalidInputError: If it has none.
    """
    follower, position, parts = log_keeper(_GROUP).follow(name, project), "", list[pa.Table]()
    try:
        while True:
            stretch = follower.read(position, LEARNED_FROM)
            parts.append(features_of_log(stretch.rows))
            position = stretch.position
            if not stretch.more:
                break
            while sum(part.num_rows for part in parts[1:]) >= LEARNED_FROM:
                del parts[0]
    finally:
        follower.close()
    rows = pa.concat_tables([part for part in parts if part.num_rows] or parts[-1:], promote_options="permissive")
    if not rows.num_rows:
        raise InvalidInputError(
            f"The feature group {name} has no rows yet to compare new ones with; insert some, or give a reference."
        )
    return rows
