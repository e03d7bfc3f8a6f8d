"""Whether a group changed: what sets off a pipeline with `when=features.changed("teams")`.

A scheduler looks every few seconds, so this reads names and the last commits only, and needs no library.
"""

from __future__ import annotations

import re
from typing import Any, Final

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.triggers import Seen, Trigger
from cargobike.features.delta.actions import Action, Add, CommitInfo, Remove, decode_actions
from cargobike.features.groups.naming import NAME, find_definitions, folder_of_rows
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import storage_of

KIND: Final = "changed"
MOST_NAMED: Final = 100
"""A cause names so many of the newest commits."""
_MARK: Final = re.compile(r"([1-9][0-9]{0,5}):(-1|[0-9]{1,18})")
_COMMIT: Final = re.compile(r"([0-9]{20})\.json")


def changed(group: str) -> Trigger:
    """Set off a pipeline whenever rows of a feature group were added, changed or deleted.

    The pipeline's cause has `version`, `commits` (their numbers) and `rows` (how many were added or changed).

    Args:
        group: Its name.

    Raises:
        InvalidInputError: If that is no name of a group.

    Example:
        >>> from cargobike import features
        >>> print(features.changed("teams"))
        teams changed
    """
    if not NAME.fullmatch(group):
        raise InvalidInputError(
            f"{group!r} is no name of a feature group; names have small letters, digits and '_', such as 'teams'."
        )
    return Trigger(KIND, group)


def look(trigger: Trigger, mark: str, project: ProjectFolder) -> Seen:
    """Look whether a group changed since a mark.

    Raises:
        NotFoundError: If there is no such group.
        StoreError: If the project's storage does not answer.
    """
    storage, name = storage_of(project), trigger.subject
    groups = find_definitions(storage)
    versions = [version for group, version in groups if group == name]
    if not versions:
        names = sorted({group for group, _ in groups})
        raise NotFoundError(
            f"There is no feature group {name!r} in {project.root}.{nearest(name, names)}",
            wanted=name,
            nearest=nearest_names(name, names),
        )
    version = max(versions)
    folder = f"{folder_of_rows(name, version)}/_delta_log"
    match = _MARK.fullmatch(mark)
    if match is None:
        return Seen(f"{version}:{_newest(storage, folder)}")
    last = int(match[2]) if int(match[1]) == version else -1
    numbers = _after(storage, folder, last)
    commits, rows = [], 0
    for number in numbers:
        data = storage.read(f"{folder}/{number:020d}.json")
        actions = [] if data is None else decode_actions(data, f"{storage}/{folder}/{number:020d}.json")
        if any(isinstance(action, Add | Remove) and action.data_change for action in actions):
            commits.append(number)
            rows += _rows(actions)
    seen = f"{version}:{numbers[-1] if numbers else last}"
    if not commits:
        return Seen(seen)
    return Seen(seen, {"group": name, "version": version, "commits": commits[-MOST_NAMED:], "rows": rows})


def _rows(actions: list[Action]) -> int:
    """Return how many rows a commit added or changed, also if another program made it."""
    for action in actions:
        if isinstance(action, CommitInfo) and action.cargobike:
            counts: list[Any] = [action.cargobike.get(name, 0) for name in ("inserted", "updated")]
            return sum(count for count in counts if isinstance(count, int))
    return sum(action.statistics.num_records for action in actions if isinstance(action, Add))


def _after(storage: Storage, folder: str, last: int) -> list[int]:
    """Return the numbers of the commits after one; a listing is needed only if that one was cleaned away."""
    numbers = []
    number = last + 1
    while storage.stat(f"{folder}/{number:020d}.json") is not None:
        numbers.append(number)
        number += 1
    if not numbers and last >= 0 and storage.stat(f"{folder}/{last:020d}.json") is None:
        numbers = [number for number in _numbers(storage, folder) if number > last]
        if not numbers:
            raise StoreError(f"The commits of {folder} are gone; was the group made anew? Schedule it again.")
    return numbers


def _newest(storage: Storage, folder: str) -> int:
    return max(_numbers(storage, folder), default=-1)


def _numbers(storage: Storage, folder: str) -> list[int]:
    names = (_COMMIT.fullmatch(entry.path.rpartition("/")[2]) for entry in storage.list(folder))
    return sorted(int(match[1]) for match in names if match)
