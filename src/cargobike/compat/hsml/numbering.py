"""Names and versions of models as the older libraries had them, over ours.

Our versions never change and have no gaps. Where a script says which number a version is to have, or overwrites one, an
alias `v3` says which version of ours is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from cargobike import models
from cargobike.core.errors import InvalidInputError, NotFoundError

_ALIAS: Final = re.compile(r"v([1-9][0-9]{0,8})")


def model_name(name: str) -> str:
    """Return the name of a model as we write it: in lower case, without other characters than `_` and `-`."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", str(name).lower()).strip("-_")
    return plain if plain[:1].isalpha() else f"m-{plain}"


def versions(name: str) -> dict[int, models.ModelVersion]:
    """Return the versions of a model by the numbers that scripts know, in ascending order."""
    try:
        listed = models.list(model_name(name))
    except NotFoundError:
        return {}
    aliases = listed[0].all_aliases if listed else {}
    meant = {int(match[1]): version for alias, version in aliases.items() if (match := _ALIAS.fullmatch(alias))}
    moved = set(meant.values())
    found = {one.version: one for one in listed if one.version not in moved and one.version not in meant}
    by_version = {one.version: one for one in listed}
    found |= {number: by_version[version] for number, version in meant.items() if version in by_version}
    return dict(sorted(found.items()))


def find(name: str, number: int | None = None) -> tuple[int, models.ModelVersion]:
    """Return a version of a model and its number; the newest unless one is named.

    Raises:
        NotFoundError: If there is none.
    """
    known = versions(name)
    if not known:
        models.get(model_name(name))  # says what there is
    if number is None:
        number = max(known)
    if number not in known:
        raise NotFoundError(f"The model {name} has no version {number}; it has {', '.join(map(str, known))}.")
    return number, known[number]


def best(name: str, metric: str, direction: str) -> tuple[int, models.ModelVersion]:
    """Return the version with the best value of a metric, and its number."""
    chosen = models.best(model_name(name), metric, direction.lower())  # type: ignore[arg-type]  # it is checked there
    numbers = {one.version: number for number, one in versions(name).items()}
    return numbers.get(chosen.version, chosen.version), chosen


def register(
    name: str, number: int | None, *, overwrite: bool = False, tags: Mapping[str, str] | None = None, **said: Any
) -> tuple[int, models.ModelVersion]:
    """Register a version under a number, by default the next one.

    Raises:
        InvalidInputError: If the number is taken.
    """
    known = versions(name)
    if number in known and not overwrite:
        raise InvalidInputError(f"The model {name} has a version {number} already; leave the version out for the next.")
    number = max(known, default=0) + 1 if number is None else int(number)
    version = models.register(model_name(name), tags=dict(tags or {}), **said)
    if version.version != number:
        version.promote(f"v{number}")
    return number, version
