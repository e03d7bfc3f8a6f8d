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
        names: Features such as `budget`; `teams.budget` says which group is meant, `teams:1.budget` which version,
            `teams.*` means all of its features. Keys and event times can be named too.
        groups: The groups of the project, one version of each, and other versions that are named.
        taken: Names that columns of the result have already.

    Raises:
        InvalidInputError: If a name is unknown, or several groups have it; lists all mistakes.
    """
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(f"{names!r} was given; give a list of names of features, such as ['budget'].")
    by_name = by_names(groups)
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
    _refuse_two_versions(owned)
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


def by_names(groups: Iterable[ReadGroup]) -> dict[str, ReadGroup]:
    """Return groups by what they are called: `teams:1` for a version, `teams` for the newest of those given."""
    found: dict[str, ReadGroup] = {}
    for group in groups:
        found[f"{group.name}:{group.definition.version}"] = group
        if group.name not in found or found[group.name].definition.version < group.definition.version:
            found[group.name] = group
    return found


def versions_named(names: Iterable[object]) -> list[tuple[str, int]]:
    """Return the groups whose version is said by names such as `teams:1.budget`."""
    owners = (str(name).rpartition(".")[0].rpartition(":") for name in names)
    return list(dict.fromkeys((group, int(version)) for group, _, version in owners if group and version.isdecimal()))


def _refuse_two_versions(owned: Iterable[tuple[str, ReadGroup | None]]) -> None:
    versions: dict[str, set[int]] = {}
    for _, owner in owned:
        if owner is not None:
            versions.setdefault(owner.name, set()).add(owner.definition.version)
    several = [name for name, found in versions.items() if len(found) > 1]
    if several:
        raise InvalidInputError(f"Several versions of {', '.join(several)} were asked for at once; choose one.")


def _owners(name: str, groups: Mapping[str, ReadGroup]) -> list[tuple[str, ReadGroup | None]]:
    owner, dot, feature = name.rpartition(".")
    if dot:
        if owner not in groups:
            raise InvalidInputError(f"There is no group {owner!r} for {name!r}.{nearest(owner, groups)}")
        return _of_group(feature, groups[owner])
    newest = [group for called, group in groups.items() if ":" not in called]
    fitting = [group for group in newest if name in group.definition.features]
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
