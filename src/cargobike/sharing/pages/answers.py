"""The shapes that the API of sharing answers with."""

from __future__ import annotations

from typing import Annotated, Any

from cargobike.ui.answers import Answer, Field

Count = Annotated[int, Field(ge=0)]


class PublicationLine(Answer):
    """A version of a publication, as lists show it."""

    reference: str
    name: str
    version: Count
    publisher: str
    alias: Annotated[str, Field(description="What this project calls the publisher.")]
    standing: Annotated[str, Field(description="`trusted`, `muted` or nothing.")]
    kind: str
    description: str
    license: str
    tags: list[str]
    size_bytes: Count
    num_files: Count
    rows: int | None
    rating: float | None
    num_opinions: Count
    created: Annotated[str, Field(description="By the publisher's clock; nothing is ordered by it.")]
    is_withdrawn: bool
    is_here: Annotated[bool, Field(description="Whether this project holds all of it.")]


class NetworkLine(Answer):
    """A network that the project knows."""

    name: str
    publications: Count
    is_served: Annotated[bool, Field(description="Whether a daemon of this project runs.")]
    is_paused: bool
    address: str
    members: Count


class NetworkList(Answer):
    """The networks of the project, and its key."""

    publisher: Annotated[str, Field(description="Empty if the project has never shared anything.")]
    networks: list[NetworkLine]


class MemberLine(Answer):
    """A member that the daemon knows."""

    publisher: str
    address: str
    given_bytes: Count
    rate: Annotated[float | None, Field(description="Bytes in a second that arrive there now.")]
    phase: Annotated[str, Field(description="What the governor does on the path to it.")]
    problem: str


class NetworkDetails(Answer):
    """A network: what was found in it, and what is transferred."""

    network: NetworkLine
    publications: list[PublicationLine]
    total: Count
    limits: list[str]
    members: list[MemberLine]
    lenders: Annotated[list[str], Field(description="Keys of members that cannot be dialled; it passes theirs on.")]
    lent_to: Annotated[list[str], Field(description="Members that cannot dial it, and ask over its own calls.")]
    may_change: bool


class HolderLine(Answer):
    """What a member has of a publication."""

    publisher: Annotated[str, Field(description="Empty if it was not reached.")]
    address: str
    share: Annotated[float, Field(ge=0, le=1, description="How much of it, from 0 to 1.")]
    rate: Annotated[float, Field(description="Bytes in a second at which one piece came; 0 if none was asked for.")]
    problem: Annotated[str, Field(description="Why it was not reached.")]
    through: Annotated[list[str], Field(description="Keys of members that cannot be dialled, and come through it.")]


class HolderList(Answer):
    """Who has a publication, those with the most first."""

    holders: list[HolderLine]


class FileLine(Answer):
    """A file of a publication."""

    path: str
    size_bytes: Count
    root: str


class OpinionLine(Answer):
    """What a member thinks of a publication."""

    author: str
    alias: str
    version: Count
    rating: Count
    text: str
    created: str


class ColumnLine(Answer):
    """A column of a publication's rows."""

    name: str
    type: str


class PublicationDetails(Answer):
    """A publication: everything that is known of it."""

    network: str
    publication: PublicationLine
    versions: list[int]
    columns: list[ColumnLine]
    sample: list[dict[str, Any]]
    files: Annotated[list[FileLine], Field(description="At most the first 1000.")]
    opinions: list[OpinionLine]
    places: Annotated[list[str], Field(description="Where it lies in this project.")]
    web_seeds: list[str]
    infohash_v1: str
    infohash_v2: str


class Changed(Answer):
    """Something was changed."""

    words: str
