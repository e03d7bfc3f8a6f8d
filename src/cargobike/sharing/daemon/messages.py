"""What commands and pages say to a daemon, and what it answers: one JSON object in each line."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from cargobike.sharing.shapes import Holder

MOST_LINE: Final = 4 << 20
Words = Annotated[str, Meta(max_length=200)]


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all messages."""


class AskStatus(Control, frozen=True, tag="status?"):
    """Asks how it is."""


class Pause(Control, frozen=True, tag="pause"):
    """Give no pieces until told otherwise."""


class Resume(Control, frozen=True, tag="resume"):
    """Give pieces again."""


class SetLimits(Control, frozen=True, tag="limits"):
    """Change limits; what is `None` stays as it is.

    Attributes:
        send: What may be sent in a second, such as `20MB/s` or `none`.
        receive: The same for what comes in.
        peers: The same for single members, by key; `none` takes a limit away.
        hours: Rates for hours of the day, such as `mon-fri 08:00-18:00 send=2MB/s`; replaces all that were set.
        gives_way: Whether transfers make room for other traffic.
    """

    send: Words | None = None
    receive: Words | None = None
    peers: Annotated[dict[Words, Words], Meta(max_length=1000)] | None = None
    hours: Annotated[tuple[Words, ...], Meta(max_length=100)] | None = None
    gives_way: bool | None = None


class AddPeer(Control, frozen=True, tag="peer"):
    """Here is another member."""

    address: Words


class Gossip(Control, frozen=True, tag="gossip"):
    """Compare catalogues with all members now; answered when that is done."""


class AskHolders(Control, frozen=True, tag="holders?"):
    """Ask all members what they have of a publication; answered when they have said so."""

    reference: Words


class Holders(Control, frozen=True, tag="holders"):
    """What members have of a publication, those with the most first."""

    holders: tuple[Holder, ...]


class Stop(Control, frozen=True, tag="stop"):
    """End."""


class Shared(Control, frozen=True):
    """Something that is given to others."""

    reference: str
    place: str
    size: int


class GivenTo(Control, frozen=True):
    """What was given to one member since the daemon started."""

    publisher: str
    address: str
    pieces: int
    size: int
    last_at: float


class Known(Control, frozen=True):
    """An address, and what is known of it."""

    address: str
    publisher: str
    met_at: float
    failures: int
    problem: str = ""


class PathState(Control, frozen=True):
    """How the governor treats the path to one member."""

    peer: str
    connections: int
    phase: str
    rate: float | None
    delivered_rate: float
    base_delay_s: float | None
    queueing_delay_s: float


class Status(Control, frozen=True, tag="status"):
    """How a daemon is.

    Attributes:
        network: Which network it serves.
        publisher: The project's key.
        address: Where it listens.
        pid: Its process.
        since: When it started, in seconds since 1970.
        is_paused: Whether it gives no pieces.
        records: How many publications are known.
        shared: What it gives to others.
        given: To whom it gave how much.
        peers: Members that it knows.
        limits: What is allowed, as in `SetLimits`.
        paths: How fast each member is served.
        lenders: Keys of members that cannot be dialled, and whose pieces are passed on.
        lent_to: Addresses of members that cannot dial this one, and ask it over its own calls.
    """

    network: str
    publisher: str
    address: str
    pid: int
    since: float
    is_paused: bool
    records: int
    shared: tuple[Shared, ...]
    given: tuple[GivenTo, ...]
    peers: tuple[Known, ...]
    limits: SetLimits
    paths: tuple[PathState, ...] = ()
    lenders: tuple[str, ...] = ()
    lent_to: tuple[str, ...] = ()


class Done(Control, frozen=True, tag="done"):
    """It was done."""

    words: str = ""


class Problem(Control, frozen=True, tag="problem"):
    """It was not done."""

    words: str


Request: TypeAlias = AskStatus | Pause | Resume | SetLimits | AddPeer | Gossip | AskHolders | Stop
Reply: TypeAlias = Status | Holders | Done | Problem
requests: Final = msgspec.json.Decoder(Request)
replies: Final = msgspec.json.Decoder(Reply)
