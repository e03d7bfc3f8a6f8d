"""How models, versions and aliases are called: `digits`, `digits:3`, `digits@champion`."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cargobike.core.errors import InvalidInputError

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
ALIAS: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
LONGEST_TAG: Final = 100
LATEST: Final = "latest"
"""What stands for the newest version wherever an alias can stand; it cannot be moved."""

_REFERENCE: Final = re.compile(
    rf"(?P<name>{NAME.pattern})(?::(?P<version>[1-9][0-9]{{0,8}})|@(?P<alias>{ALIAS.pattern}))?"
)


class Reference(NamedTuple):
    """Which version is meant: by number, by alias, or the newest if neither is said."""

    name: str
    version: int | None = None
    alias: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.version}" if self.version else f"{self.name}@{self.alias or LATEST}"


def read_reference(text: object) -> Reference:
    """Return what a text refers to.

    Raises:
        InvalidInputError: If it cannot be understood.

    Example:
        >>> read_reference("digits@champion").alias, read_reference("digits:3").version
        ('champion', 3)
    """
    match = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidInputError(
            f"{text!r} was given; a version of a model is written digits:3, digits@champion, or digits for the newest. "
            f"{_NAMES}{_nearest_name(text)}"
        )
    alias = "" if match["alias"] in {None, LATEST} else match["alias"]
    return Reference(match["name"], int(match["version"]) if match["version"] else None, alias)


def check_name(name: object) -> str:
    """Return the name of a model.

    Raises:
        InvalidInputError: If it can be none.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} was given as the name of a model. {_NAMES}{_nearest_name(name)}")
    return name


def check_alias(alias: object) -> str:
    """Return an alias that can be moved.

    Raises:
        InvalidInputError: If it can be none.
    """
    if not isinstance(alias, str) or not ALIAS.fullmatch(alias) or keyword.iskeyword(alias):
        raise InvalidInputError(
            f"{alias!r} was given as an alias; aliases have lower-case letters, digits and '_', and begin with a "
            "letter, such as champion."
        )
    if alias == LATEST:
        raise InvalidInputError("The alias latest always means the newest version and cannot be moved; take another.")
    return alias


_NAMES: Final = (
    "Names have lower-case letters, digits, '_' and '-', begin with a letter, and have at most 63 characters."
)


def _nearest_name(given: object) -> str:
    """Suggest a name that is allowed and looks like what was given."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", str(given)[:63].lower()).strip("-_0123456789")
    return f" Did you mean {plain!r}?" if NAME.fullmatch(plain) else ""


def read_tags(tags: Any) -> tuple[str, ...]:
    """Return tags that were given: words, or a mapping, of which `key=value` become words.

    Raises:
        InvalidInputError: If one is no tag.
    """
    if isinstance(tags, str):
        tags = (tags,)
    words = [f"{key}={value}" for key, value in tags.items()] if isinstance(tags, Mapping) else list(tags or ())
    for word in words:
        if not isinstance(word, str) or not word.strip() or len(word) > LONGEST_TAG or not word.isprintable():
            raise InvalidInputError(
                f"{word!r} was given as a tag; a tag has 1 to {LONGEST_TAG} characters that can be printed."
            )
    return tuple(dict.fromkeys(word.strip() for word in words))
