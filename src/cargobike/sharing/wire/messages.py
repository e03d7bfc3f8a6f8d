"""What members say to each other: one end asks, the other answers, in the order of the questions.

The end that dialled asks, unless it has greeted with `may_be_asked`.

Headers are msgpack, decoded only after their seal has opened and the other end has shown its key. What is large travels
in the body of a frame; each kind of body has a bound of its own, checked before any of it is read.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

FORMAT: Final = 1
MOST_BODY: Final = 32 << 20
MOST_ROOTS: Final = 4096
MOST_PEERS: Final = 200

Root = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
PieceSize = Annotated[int, Meta(ge=16 * 1024, le=16 * 1024 * 1024)]
Number = Annotated[int, Meta(ge=0, le=2**40)]
Address = Annotated[str, Meta(max_length=280)]
Newest = Annotated[
    dict[Annotated[str, Meta(max_length=60)], Annotated[int, Meta(ge=0, le=2**31)]], Meta(max_length=8192)
]


class Message(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Base of all messages; fields are only ever added at the end, with defaults."""


class Greeting(Message, frozen=True, tag="greeting"):
    """What both ends say first.

    Attributes:
        format: The newest form of messages that this end knows.
        port: Where it can be dialled; 0 if it cannot.
        host: Where, if that is not the address that the connection comes from.
        is_paused: Whether it gives no pieces just now.
        is_giver: Whether it gives pieces to members that ask it.
        wants_call: Whether it would ask the end that dialled, which it cannot dial, if that called once more.
        may_be_asked: Whether the end that dialled answers on this connection, and the other asks.
    """

    format: int = FORMAT
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    host: Annotated[str, Meta(max_length=255)] = ""
    is_paused: bool = False
    is_giver: bool = False
    wants_call: bool = False
    may_be_asked: bool = False


class AskEntries(Message, frozen=True, tag="entries?"):
    """Asks for signed records that this end lacks: of each publisher those after a sequence number."""

    newest: Newest


class Entries(Message, frozen=True, tag="entries"):
    """Signed records in the body, as a msgpack list; `newest` is what the other end has, `more` whether to ask on."""

    newest: Newest = {}
    more: bool = False


class Offer(Message, frozen=True, tag="offer"):
    """Brings signed records, in the body as above, that the other end said it lacks."""


class Taken(Message, frozen=True, tag="taken"):
    """How many of the records on offer were new."""

    count: Number


class AskHave(Message, frozen=True, tag="have?"):
    """Asks which pieces of some files the other end has."""

    roots: Annotated[tuple[Root, ...], Meta(max_length=MOST_ROOTS)]
    piece_size: PieceSize


class Have(Message, frozen=True, tag="have"):
    """A msgpack list in the body: for each file a set of bits, the first piece in the highest bit; nothing for none.

    Attributes:
        through: Keys of members that cannot be dialled, and whose pieces this end passes on; they are in the sets.
    """

    through: Annotated[tuple[Annotated[str, Meta(max_length=60)], ...], Meta(max_length=MOST_PEERS)] = ()


class AskLayer(Message, frozen=True, tag="layer?"):
    """Asks for the hashes of the pieces of a file."""

    root: Root
    piece_size: PieceSize


class Layer(Message, frozen=True, tag="layer"):
    """The hashes in the body, 32 bytes each."""


class AskPiece(Message, frozen=True, tag="piece?"):
    """Asks for a piece of a file."""

    root: Root
    piece_size: PieceSize
    number: Number


class Piece(Message, frozen=True, tag="piece"):
    """The bytes in the body."""


class AskPeers(Message, frozen=True, tag="peers?"):
    """Asks which members the other end knows."""


class Peers(Message, frozen=True, tag="peers"):
    """Addresses that were reached lately, or that said so themselves."""

    addresses: Annotated[tuple[Address, ...], Meta(max_length=MOST_PEERS)]


class Refused(Message, frozen=True, tag="refused"):
    """What was asked for is not given; `is_paused` if it may be later."""

    why: Annotated[str, Meta(max_length=300)]
    is_paused: bool = False


Question: TypeAlias = AskEntries | Offer | AskHave | AskLayer | AskPiece | AskPeers
Answer: TypeAlias = Entries | Taken | Have | Layer | Piece | Peers | Refused

encode: Final = msgspec.msgpack.Encoder().encode
greetings: Final = msgspec.msgpack.Decoder(Greeting)
questions: Final = msgspec.msgpack.Decoder(Question)
answers: Final = msgspec.msgpack.Decoder(Answer)
