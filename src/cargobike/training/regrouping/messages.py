"""What a rank and the driver say to each other about who is there; bodies of `Said`, `Tell` and `Ended`."""

from __future__ import annotations

import msgspec


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """A rank wants to meet the others; `place` is where it could keep the meeting point, as `address:port`."""

    place: str


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """A rank got further: what was lost before need not be counted any more."""


class World(msgspec.Struct, frozen=True, tag="world"):
    """These ranks meet.

    Attributes:
        generation: How many worlds there were before.
        rank: Which one you are.
        hosts: The host of each rank.
        place: Where they meet.
    """

    generation: int
    rank: int
    hosts: tuple[str, ...]
    place: str


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """Ranks want to join this world, or have to leave it: meet again when that suits you."""

    generation: int
    only_leave: bool


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """A rank of this world is lost."""

    generation: int
    why: str


class Dismissed(msgspec.Struct, frozen=True, tag="dismissed"):
    """There is no place for you any more: end."""


class Task(msgspec.Struct, frozen=True):
    """The body of an assignment: call the function."""


class Outcome(msgspec.Struct, frozen=True):
    """How that ended: with nothing to say, or with a traceback and the exit code of a program."""

    error: str = ""
    code: int = 0


FromRank = Ready | Progress
ToRank = World | Changed | Broken | Dismissed

decode_from_rank = msgspec.msgpack.Decoder(FromRank).decode
decode_to_rank = msgspec.msgpack.Decoder(ToRank).decode
encode = msgspec.msgpack.Encoder().encode
