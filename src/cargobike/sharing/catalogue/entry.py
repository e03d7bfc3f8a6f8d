"""A publication as it is found, a question to a catalogue, and how people refer to a publication."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NamedTuple

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.sharing.identity.keys import short

Standing = Literal["", "trusted", "muted", "blocked"]
_REFERENCE: Final = re.compile(r"(?P<name>[^@:]+)(?:@(?P<publisher>.*?))?(?::(?P<version>[0-9]{1,9}))?")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A version of something that was published in a network.

    Attributes:
        name: What it is called.
        version: Its number.
        publisher: The key that signed it.
        network: The network that it was published in.
        kind: `table`, `dataset`, `model`, `folder` or `url`.
        description: What the publisher says about it.
        license: What others may do with it.
        tags: Words to find it by.
        size: Bytes of all files.
        num_files: How many files.
        rows: How many rows, if it has rows.
        columns: Their columns: names and types.
        created: When, by the publisher's clock.
        sequence: Its place in what the publisher has signed.
        rating: The mean of all ratings, from 1 to 5; `None` if there are none.
        num_opinions: How many ratings and comments there are.
        standing: What this project thinks of the publisher.
        alias: What this project calls the publisher.
        head: The key that the publisher signs with now; the same as `publisher` unless it was replaced.
        is_withdrawn: Whether the publisher has taken it back.
        web_seeds: Servers that have it, too.
        infohash_v1: What clients of BitTorrent v1 call it.
        infohash_v2: What those of v2 call it.
    """

    name: str
    version: int
    publisher: str
    network: str
    kind: str
    description: str
    license: str
    tags: tuple[str, ...]
    size: int
    num_files: int
    rows: int | None
    columns: tuple[tuple[str, str], ...]
    created: str
    sequence: int
    rating: float | None = None
    num_opinions: int = 0
    standing: Standing = ""
    alias: str = ""
    head: str = ""
    is_withdrawn: bool = False
    web_seeds: tuple[str, ...] = ()
    infohash_v1: str = ""
    infohash_v2: str = ""

    @property
    def reference(self) -> str:
        """What to call it in commands: `higgs@AbCdEfGhIj:3`."""
        return f"{self.name}@{self.alias or short(self.publisher)}:{self.version}"

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data for programs."""
        return {"reference": self.reference, **msgspec.to_builtins(self)}


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What a member thinks of a publication."""

    author: str
    alias: str
    version: int
    rating: int
    text: str
    created: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for in a catalogue; what is left out does not matter.

    Attributes:
        words: All of them occur in name, description, tags or columns; the beginning of a word is enough.
        tags: It has all of these tags.
        columns: Its rows have all of these columns.
        publisher: A key, the beginning of one, or what this project calls the publisher.
        kind: What it is.
        least_bytes: It is at least so large.
        most_bytes: It is at most so large.
        all_versions: Not only the newest version of each.
        hidden: Also what was withdrawn, and what muted publishers have published.
        limit: How many at most.
    """

    words: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    publisher: str = ""
    kind: str = ""
    least_bytes: int = 0
    most_bytes: int | None = None
    all_versions: bool = False
    hidden: bool = False
    limit: int = 100


class Reference(NamedTuple):
    """What a person calls a publication: `higgs`, `higgs:3`, `higgs@alice`, `higgs@alice:3`."""

    name: str
    publisher: str = ""
    version: int | None = None


def read_reference(text: str) -> Reference:
    """Read what a person calls a publication.

    Raises:
        InvalidInputError: If it cannot be understood.

    Example:
        >>> read_reference("higgs@alice:3")
        Reference(name='higgs', publisher='alice', version=3)
    """
    match = _REFERENCE.fullmatch(text.strip())
    if match is None or match["publisher"] == "":
        raise InvalidInputError(
            f"{text[:200]!r} was given; write NAME, NAME:VERSION, NAME@PUBLISHER or NAME@PUBLISHER:VERSION, such as "
            f"higgs@alice:3."
        )
    return Reference(match["name"], match["publisher"] or "", int(match["version"]) if match["version"] else None)
