"""Answer what other members ask: records, pieces and the hashes of pieces, and where other members are."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.swarm.gossip import answer_entries, take_offer
from cargobike.sharing.swarm.lenders import Lenders, united
from cargobike.sharing.wire.member import Member, bits_of
from cargobike.sharing.wire.messages import (
    AskEntries,
    AskHave,
    AskLayer,
    AskPeers,
    AskPiece,
    Have,
    Layer,
    Offer,
    Peers,
    Piece,
    Refused,
)

_log = logging.getLogger(__name__)
_MOST_NAMED: Final = 1000
_PATIENCE_S: Final = 20.0
"""How long a member is kept waiting when limits allow nothing; it gives up after `wire.member.WAIT_S`."""


class Paced(Protocol):
    """What keeps a connection to its pace."""

    def wait(self, count: int, timeout_s: float | None = None) -> bool:
        """Wait until bytes may be sent; returns whether they may now."""

    def sent(self, count: int) -> None:
        """Count bytes that were sent."""


Pace = Callable[[Member], AbstractContextManager[Paced]]


@dataclass
class Given:
    """What was given to one member."""

    pieces: int = 0
    size: int = 0
    last_s: float = 0.0
    address: str = ""


@dataclass
class Giving:
    """What was given to all members, and whether anything is given at all; shared by all conversations."""

    is_paused: bool = False
    by_member: OrderedDict[str, Given] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, member: Member, size: int) -> None:
        """Note that a piece was given."""
        with self.lock:
            given = self.by_member.setdefault(member.publisher, Given())
            self.by_member.move_to_end(member.publisher)
            given.pieces += 1
            given.size += size
            given.last_s, given.address = time.time(), member.address
            if len(self.by_member) > _MOST_NAMED:
                self.by_member.popitem(last=False)


class Answers:
    """Answers one member after the other; `talk` is called in a thread for each.

    Args:
        catalogue: What is known.
        holdings: What is here.
        giving: Counts, and says whether pieces are given now.
        known_peers: Returns addresses of other members.
        met: Called with each member that comes, and the address it can be dialled at; empty if it cannot.
        pace: Keeps connections to a pace; `None` for as fast as they go.
        lenders: Members whose pieces are passed on; `None` to give only what is here.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        holdings: Holdings | None,
        giving: Giving,
        *,
        known_peers: Callable[[], list[str]] = list,
        met: Callable[[Member, str], None] = lambda _member, _address: None,
        pace: Pace | None = None,
        lenders: Lenders | None = None,
    ) -> None:
        self._catalogue, self._holdings, self._giving = catalogue, holdings, giving
        self._known_peers, self._met, self._pace, self._lenders = known_peers, met, pace, lenders

    def talk(self, member: Member) -> None:
        """Answer a member until it goes.

        Raises:
            ConnectionError: When it has gone.
        """
        self._met(member, dialled_at(member))
        if self._pace is None:
            while True:
                self._answer(member, None)
        with self._pace(member) as paced:
            while True:
                self._answer(member, paced)

    def _answer(self, member: Member, paced: Paced | None) -> None:
        question, body = member.hear_question()
        if isinstance(question, AskPiece):
            self._give(member, question, paced)
        elif isinstance(question, AskHave):
            have, bits = self._flags(question)
            member.say(have, bits)
        elif isinstance(question, AskLayer):
            hashes = self._layer(question)
            member.say(*((Layer(), hashes) if hashes is not None else (Refused(why="its pieces are not known here"),)))
        elif isinstance(question, AskEntries):
            answer_entries(member, question, self._catalogue)
        elif isinstance(question, Offer):
            take_offer(member, body, self._catalogue)
        elif isinstance(question, AskPeers):
            member.say(Peers(addresses=tuple(self._known_peers())))

    def _give(self, member: Member, question: AskPiece, paced: Paced | None) -> None:
        if self._giving.is_paused:
            member.say(Refused(why="it is paused", is_paused=True))
            return
        if paced is not None and not paced.wait(question.piece_size, _PATIENCE_S):
            member.say(Refused(why="its limits allow nothing now", is_paused=True))
            return
        data = self._piece(question)
        if data is None:
            member.say(Refused(why="this piece is not here any more"))
            return
        sent = member.say(Piece(), data)
        if paced is not None:
            paced.sent(sent)
        self._giving.note(member, len(data))

    def _piece(self, question: AskPiece) -> bytes | bytearray | None:
        if self._holdings is None:
            return None
        data = None
        try:
            data = self._holdings.read(question.root, question.piece_size, question.number)
        except CargobikeError as error:  # a storage that does not answer
            _log.warning("A piece cannot be read: %s", error)
        if data is None and self._lenders is not None:
            return self._lenders.read(question.root, question.piece_size, question.number)
        return data

    def _layer(self, question: AskLayer) -> bytes | None:
        hashes = self._holdings.layer(question.root, question.piece_size) if self._holdings else None
        if hashes is None and self._lenders is not None:
            return self._lenders.layer(question.root, question.piece_size)
        return hashes

    def _flags(self, question: AskHave) -> tuple[Have, bytes]:
        """Return which pieces can be had here: of files that are not whole here, also from members that lend."""
        sets, lacking = [], []
        for index, root in enumerate(question.roots):
            flags = self._holdings.flags(root, question.piece_size) if self._holdings else None
            sets.append(b"" if flags is None else bits_of(flags))
            if flags is None or 0 in flags:
                lacking.append(index)
        lent: dict[str, list[bytes]] = {}
        if self._lenders is not None and lacking:
            lent = self._lenders.have([question.roots[index] for index in lacking], question.piece_size)
        for theirs in lent.values():
            for index, bits in zip(lacking, theirs, strict=True):
                sets[index] = united(sets[index], bits)
        return Have(through=tuple(lent)), msgspec.msgpack.encode(sets)


def dialled_at(member: Member) -> str:
    """Return where a member that came to us says that it can be dialled; empty if it cannot."""
    if not member.greeting.port:
        return ""
    host = member.greeting.host or member.address.rpartition(":")[0]
    return f"{host}:{member.greeting.port}"
