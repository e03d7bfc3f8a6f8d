"""The shapes of records: what a manifest and a note hold, and within which bounds.

Bounds are checked while a record is decoded; what needs more than one field to judge is in `checks.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from cargobike.sharing.identity.keys import short

MOST_BYTES: Final = 8 * 1024 * 1024
"""The largest record: one with 50,000 files."""

Key = Annotated[str, Meta(min_length=51, max_length=51)]
Hex32 = Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]
Short = Annotated[str, Meta(max_length=200)]
Count = Annotated[int, Meta(ge=0, le=2**62)]
Number = Annotated[int, Meta(ge=1, le=2**31)]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything that is signed."""


class File(Record, frozen=True):
    """One file of a publication.

    Attributes:
        path: Where it lies in the publication: a relative POSIX path.
        size: Its bytes.
        root: The root of its pieces (`hashing.py`), in hex; empty for an empty file.
    """

    path: Annotated[str, Meta(min_length=1, max_length=1000)]
    size: Count
    root: Hex32


class Column(Record, frozen=True):
    """One column of the rows that a publication holds."""

    name: Short
    type: Short


class Manifest(Record, frozen=True):
    """A version of something that is published.

    Attributes:
        format: Which form this is.
        network: The network that it was published in.
        publisher: The key that signs.
        name: What it is called.
        version: Its number, from 1.
        supersedes: The version that it takes the place of.
        sequence: Counts what the publisher has signed in this network. Order comes from it, never from a clock.
        created: When, by the publisher's clock; for people only.
        description: A sentence or more.
        license: What others may do with it, such as `CC-BY-4.0`.
        tags: Words to find it by.
        kind: What it is.
        size: Bytes of all files.
        rows: How many rows, if it has rows.
        columns: Their columns.
        sample: A few of them.
        piece_size: Bytes of a piece.
        files: What it is made of.
        web_seeds: Addresses of HTTP servers that have the files, too.
        infohash_v1: What clients of BitTorrent v1 call it.
        infohash_v2: What those of v2 call it.
    """

    format: int
    network: Annotated[str, Meta(max_length=64)]
    publisher: Key
    name: Annotated[str, Meta(max_length=100)]
    version: Number
    supersedes: Number | None
    sequence: Number
    created: Annotated[str, Meta(max_length=40)]
    description: Annotated[str, Meta(max_length=20_000)]
    license: Short
    tags: Annotated[tuple[Annotated[str, Meta(max_length=60)], ...], Meta(max_length=50)]
    kind: Literal["table", "dataset", "model", "folder", "url"]
    size: Count
    rows: Count | None
    columns: Annotated[tuple[Column, ...], Meta(max_length=5000)]
    sample: Annotated[tuple[dict[str, Any], ...], Meta(max_length=20)]
    piece_size: Count
    files: Annotated[tuple[File, ...], Meta(max_length=50_000)]
    web_seeds: Annotated[tuple[Annotated[str, Meta(max_length=2000)], ...], Meta(max_length=20)]
    infohash_v1: Annotated[str, Meta(pattern="^([0-9a-f]{40})?$")]
    infohash_v2: Hex32

    @property
    def reference(self) -> str:
        """What people call it: `higgs@AbCdEfGhIj:3`."""
        return f"{self.name}@{short(self.publisher)}:{self.version}"


class Note(Record, frozen=True):
    """What a publisher says about a publication, or about its own key.

    Attributes:
        format: Which form this is.
        network: The network that it was said in.
        publisher: The key that signs.
        sequence: Counts what the publisher has signed in this network.
        created: When, by the publisher's clock; for people only.
        what: `opinion`: a rating, a comment or both; the newest of a publisher on a publication counts. `withdrawn`:
            the publisher takes a version back. `replaced`: from now on the publisher signs with another key.
        about: Whose publication it is about; empty for `replaced`.
        name: Its name.
        version: Its version; 0 for all of them.
        rating: 1 to 5, or 0 for none.
        text: The comment, or why.
        successor: The key that takes the place of this one.
        proof: The signature of that key, which has agreed to it (`replacement_message`).
    """

    format: int
    network: Annotated[str, Meta(max_length=64)]
    publisher: Key
    sequence: Number
    created: Annotated[str, Meta(max_length=40)]
    what: Literal["opinion", "withdrawn", "replaced"]
    about: Annotated[str, Meta(max_length=51)] = ""
    name: Annotated[str, Meta(max_length=100)] = ""
    version: Count = 0
    rating: Annotated[int, Meta(ge=0, le=5)] = 0
    text: Annotated[str, Meta(max_length=4000)] = ""
    successor: Annotated[str, Meta(max_length=51)] = ""
    proof: Annotated[bytes, Meta(max_length=64)] = b""


class Signed(Record, frozen=True):
    """A record as it travels: canonical bytes, who signed them, and the signature.

    Attributes:
        kind: What the bytes are.
        body: The canonical bytes of a `Manifest` or a `Note`.
        publisher: The key.
        signature: 64 bytes.
    """

    kind: Literal["manifest", "note"]
    body: Annotated[bytes, Meta(max_length=MOST_BYTES)]
    publisher: Key
    signature: Annotated[bytes, Meta(min_length=64, max_length=64)]


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """What one member has.

    Attributes:
        address: Where it is.
        publisher: Its key; empty if it was not reached.
        share: How much of the publication it has, from 0 to 1.
        round_trip_s: How long it took to answer a small question.
        rate: Bytes in a second at which one piece came; 0 if none was asked for.
        problem: Why it was not reached.
        through: Keys of members that cannot be dialled, and whose pieces it passes on; they count as its own.
    """

    address: str
    publisher: str = ""
    share: float = 0.0
    round_trip_s: float = 0.0
    rate: float = 0.0
    problem: str = ""
    through: tuple[str, ...] = ()
