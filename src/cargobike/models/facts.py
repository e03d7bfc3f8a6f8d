"""What happened to the versions of a model after they were registered: facts in `models/<name>/facts/<number>.json`.

Each is created only if absent, so that of several writers that have seen the same facts one adds the next, and the
others look again before they decide. What holds now is these facts folded.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.layout import MODELS
from cargobike.core.values.packed_numbers import Number
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.models.naming import ALIAS
from cargobike.models.record import VersionNumber

MOST_FACT_BYTES: Final = 1 << 20
LONGEST_NOTE: Final = 20_000
LONGEST_CARD: Final = 500_000

Alias = Annotated[str, msgspec.Meta(pattern=f"^{ALIAS.pattern}$")]


class ModelFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="fact"):
    """Base of all facts: when, and by whom."""

    at: float
    by: str = ""


class AliasMoved(ModelFact, frozen=True, tag="alias-moved"):
    """An alias points at a version from now on.

    Attributes:
        before: The version that it pointed at before; `None` if it is new.
        when: The gate that the version had to pass, if there was one.
        figures: What was compared.
        remark: What there was to say about the gate.
        step: What names the step of a pipeline that moved it; empty outside of pipelines.
    """

    alias: Alias
    version: VersionNumber
    before: VersionNumber | None = None
    when: str = ""
    figures: dict[str, Number | None] = {}
    remark: str = ""
    step: str = ""


class AliasRemoved(ModelFact, frozen=True, tag="alias-removed"):
    """An alias points at nothing any more."""

    alias: Alias
    before: VersionNumber | None = None


class Tagged(ModelFact, frozen=True, tag="tagged"):
    """Tags were added to a version, and others taken away."""

    version: VersionNumber
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class Noted(ModelFact, frozen=True, tag="noted"):
    """A note was written about a version."""

    version: VersionNumber
    text: str


class CardWritten(ModelFact, frozen=True, tag="card-written"):
    """The card of a version was edited; an empty text goes back to the one that is made from what is known."""

    version: VersionNumber
    text: str = ""


class VersionRemoved(ModelFact, frozen=True, tag="version-removed"):
    """The files of a version were deleted; what was known of it stays."""

    version: VersionNumber
    reason: str = ""


class VersionRestored(ModelFact, frozen=True, tag="version-restored"):
    """A version is there after all: a deployment began to use it while it was being removed."""

    version: VersionNumber
    reason: str = ""


AnyModelFact = AliasMoved | AliasRemoved | Tagged | Noted | CardWritten | VersionRemoved | VersionRestored

_decoder: msgspec.json.Decoder[AnyModelFact] = msgspec.json.Decoder(AnyModelFact)


class Note(msgspec.Struct, frozen=True):
    """One note: when, by whom, what."""

    at: float
    by: str
    text: str


class State(msgspec.Struct):
    """The facts of a model, folded.

    Attributes:
        facts: How many there are.
        aliases: The version that each alias points at.
        moves: All moves of aliases, the oldest first.
        tags: Tags of each version that were added, and taken away (`False`).
        notes: Notes about each version, the oldest first.
        cards: The edited card of each version.
        removed: When each version was removed.
    """

    facts: int = 0
    aliases: dict[str, int] = {}
    moves: list[AliasMoved | AliasRemoved] = []
    tags: dict[int, dict[str, bool]] = {}
    notes: dict[int, list[Note]] = {}
    cards: dict[int, str] = {}
    removed: dict[int, float] = {}

    def apply(self, fact: AnyModelFact) -> None:
        """Add the next fact."""
        self.facts += 1
        if isinstance(fact, AliasMoved):
            self.aliases[fact.alias] = fact.version
            self.moves.append(fact)
        elif isinstance(fact, AliasRemoved):
            self.aliases.pop(fact.alias, None)
            self.moves.append(fact)
        elif isinstance(fact, Tagged):
            tags = self.tags.setdefault(fact.version, {})
            tags.update(dict.fromkeys(fact.add, True) | dict.fromkeys(fact.remove, False))
        elif isinstance(fact, Noted):
            self.notes.setdefault(fact.version, []).append(Note(fact.at, fact.by, fact.text))
        elif isinstance(fact, CardWritten):
            self.cards[fact.version] = fact.text
        elif isinstance(fact, VersionRestored):
            self.removed.pop(fact.version, None)
        else:
            self.removed.setdefault(fact.version, fact.at)

    def aliases_of(self, version: int) -> list[str]:
        """Return the aliases that point at a version, in alphabetical order."""
        return sorted(alias for alias, number in self.aliases.items() if number == version)

    def tags_of(self, version: int, first: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the tags of a version, in alphabetical order; `first` are those that it was registered with."""
        tags = dict.fromkeys(first, True) | self.tags.get(version, {})
        return tuple(sorted(tag for tag, is_there in tags.items() if is_there))


def fact_path(name: str, number: int) -> str:
    """Return where a fact lies in its project."""
    return f"{MODELS}/{name}/facts/{number}.json"


def encode_fact(fact: ModelFact) -> bytes:
    """Return the bytes of a fact."""
    return msgspec.json.encode(fact)


def decode_fact(data: bytes, place: str) -> Any:
    """Return the fact that some bytes hold.

    Raises:
        StoreError: If they hold none; says where.
    """
    if len(data) > MOST_FACT_BYTES:
        raise StoreError(f"{place} is no fact about a model: it has more than {MOST_FACT_BYTES >> 20} MiB.")
    try:
        return _decoder.decode(data)
    except UNDECODABLE as error:
        raise StoreError(f"{place} is no fact about a model: {error}") from error


def encode_state(state: State) -> bytes:
    """Return a state as bytes, for a cache."""
    return msgspec.msgpack.encode(state)


def decode_state(data: bytes) -> State:
    """Undo `encode_state`."""
    return msgspec.msgpack.decode(data, type=State)
