"""Find which group owns each feature that a user names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.features.reading import ReadGroup


class Owned(NamedTuple):
    """A feature, the group that owns it, and what it is called in the result.

    The owner is `None` for a column of the spine, such as a key: every group of the query has it.
    """

    feature: str
    owner: ReadGroup | None
    column: str


def find_owners(names: Sequence[str], groups: Sequence[ReadGroup], taken: Iterable[str] = ()) -> list[Owned]:
    """Return each named feature with its owner, in the order given.

    Args:
        names: Features such as `budget`; `teams.budget` says which group is meant, `teams.*` means all of its features.
            Keys and event times can be named too.
        groups: The groups of the project, one version of each.
        taken: Names that columns of the result have already.

    Raises:
        InvalidInputError: If a name is unknown, or several groups have it; lists all mistakes.
    """
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(f"{names!r} was given; give a list of names of features, such as ['budget'].")
    by_name = {group.name: group for group in groups}
    mistakes: list[str] = []
    owned: list[tuple[str, ReadGroup | None]] = []
    for name in names:
        try:
            owned.extend(_owners(name, by_name))
        except InvalidInputError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError("These features cannot be found:", mistakes)
    owned = list(dict.fromkeys(owned))
    times = Counter(feature for feature, _ in owned)
    is_taken = set(taken)
    return [
        Owned(
            feature,
            owner,
            f"{owner.name}_{feature}" if owner and (times[feature] > 1 or feature in is_taken) else feature,
        )
        for feature, owner in owned
    ]


def _owners(name: str, groups: Mapping[str, ReadGroup]) -> list[tuple[str, ReadGroup | None]]:
    owner, dot, feature = name.rpartition(".")
    if dot:
        if owner not in groups:
            raise InvalidInputError(f"There is no group {owner!r} for {name!r}.{nearest(owner, groups)}")
        return _of_group(feature, groups[owner])
    fitting = [group for group in groups.values() if name in group.definition.features]
    if len(fitting) > 1:
        choices = " or ".join(repr(f"{group.name}.{name}") for group in fitting)
        raise InvalidInputError(f"{name!r} is in several groups; write {choices}.")
    if fitting:
        return [(name, fitting[0])]
    if any(name in _places(group) for group in groups.values()):
        return [(name, None)]
    if name in groups:
        raise InvalidInputError(f"{name!r} is a group; write '{name}.*' for all its features.")
    known = [feature for group in groups.values() for feature in group.definition.features]
    advice = nearest(name, known) or (" There are no feature groups in this project yet." if not groups else "")
    raise InvalidInputError(f"No group has a feature {name!r}.{advice}")


def _of_group(feature: str, group: ReadGroup) -> list[tuple[str, ReadGroup | None]]:
    definition = group.definition
    if feature == "*":
        return [(each, group) for each in definition.features]
    if feature in definition.features:
        return [(feature, group)]
    if feature in _places(group):
        return [(feature, None)]
    known = [*definition.features, *_places(group)]
    raise InvalidInputError(
        f"The group {group.name} has no feature {feature!r}; it has {', '.join(known)}.{nearest(feature, known)}"
    )


def _places(group: ReadGroup) -> tuple[str, ...]:
    """Return the columns that say what a row is about, and when."""
    definition = group.definition
    return (*definition.key, *((definition.event_time,) if definition.event_time else ()))
