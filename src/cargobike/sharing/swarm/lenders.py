"""Ask members that cannot be dialled over the connections that they have lent, and pass on what they have.

What comes is verified before it is passed on: whoever asked for it would blame the end that it came from.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.hashing import layer_root, piece_hash
from cargobike.sharing.identity.keys import short
from cargobike.sharing.wire.member import Member, RefusedError
from cargobike.sharing.wire.messages import (
    Answer,
    AskHave,
    AskLayer,
    AskPeers,
    AskPiece,
    Have,
    Layer,
    Piece,
    Question,
)

_log = logging.getLogger(__name__)
CALLS: Final = 2
"""How many connections a member lends to another: while one is asked, the next question need not wait."""
_MOST_CALLS: Final = 32
_MOST_KEPT: Final = 512
_ALIVE_S: Final = 20.0
"""How often a connection is used at least; the other end takes three times of that for a death."""
_TURN_S: Final = 30.0
_DROPPED_S: Final = 3600.0
_bit_sets = msgspec.msgpack.Decoder(list[bytes])


class _Call:
    """One connection that was lent to us."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.turn = threading.Lock()
        self.ended = threading.Event()

    def ask(self, question: Question) -> tuple[Answer, bytes] | None:
        """Return an answer; nothing if it is refused, or the other end has gone."""
        try:
            return self.member.ask(question)
        except RefusedError:
            return None
        except (CargobikeError, OSError) as error:
            _log.debug("%s has gone: %s", self.member.address, error)
            self.ended.set()
            return None


class Lenders:
    """Connections that others have lent to us, and what is asked there; for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, list[_Call]] = {}
        self._dropped: dict[str, float] = {}
        self._layers: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._owners: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    @property
    def publishers(self) -> tuple[str, ...]:
        """The keys of the members that can be asked."""
        with self._lock:
            return tuple(sorted(self._calls))

    def wants(self, publisher: str) -> bool:
        """Tell whether a member should call so that it can be asked."""
        with self._lock:
            self._dropped = {key: until for key, until in self._dropped.items() if until > time.monotonic()}
            return len(self._calls.get(publisher, ())) < CALLS and publisher not in self._dropped

    def keep(self, member: Member) -> None:
        """Keep a connection as long as it lives; called in a thread of its own.

        Raises:
            ConnectionError: When the member has gone.
        """
        call = _Call(member)
        with self._lock:
            calls = self._calls.setdefault(member.publisher, [])
            if len(calls) >= CALLS or sum(map(len, self._calls.values())) >= _MOST_CALLS:
                return
            calls.append(call)
        try:
            while not call.ended.wait(_ALIVE_S):
                with call.turn:
                    if call.ask(AskPeers()) is None:
                        return
        finally:
            call.ended.set()
            with self._lock:
                calls.remove(call)
                if not calls:
                    self._calls.pop(member.publisher, None)

    def have(self, roots: Sequence[str], piece_size: int) -> dict[str, list[bytes]]:
        """Return which pieces of files each lender has that has any, as sets of bits, by its key."""
        found = {}
        for publisher in self.publishers:
            answer = self._ask(publisher, AskHave(roots=tuple(roots), piece_size=piece_size))
            if answer is None:
                continue
            try:
                sets = _bit_sets.decode(answer[1])
            except UNDECODABLE:
                sets = []
            if not isinstance(answer[0], Have) or len(sets) != len(roots):
                self._drop(publisher, "it does not say what it has")
                continue
            if any(sets):
                found[publisher] = sets
            for root, bits in zip(roots, sets, strict=True):
                owners = self._owners.get(root, ())
                if bits and publisher not in owners:
                    self._keep_in(self._owners, root, (*owners, publisher))
        return found

    def layer(self, root: str, piece_size: int) -> bytes | None:
        """Return the hashes of the pieces of a file, verified; `None` if no lender knows them."""
        kept = self._layers.get((root, piece_size))
        if kept is not None:
            return kept
        for publisher in self._candidates(root):
            answer = self._ask(publisher, AskLayer(root=root, piece_size=piece_size))
            if answer is None:
                continue
            if isinstance(answer[0], Layer) and _is_layer(answer[1], root, piece_size):
                self._keep_in(self._layers, (root, piece_size), answer[1])
                return answer[1]
            self._drop(publisher, f"the hashes of the file {root[:16]}… were wrong")
        return None

    def read(self, root: str, piece_size: int, number: int) -> bytes | None:
        """Return a piece, verified; `None` if no lender gives it."""
        for publisher in self._candidates(root):
            answer = self._ask(publisher, AskPiece(root=root, piece_size=piece_size, number=number))
            if answer is None:
                continue
            layer = None if isinstance(answer[0], Piece) and _is_alone(answer[1], root, piece_size) else b""
            if layer is not None:
                layer = self.layer(root, piece_size)
                if layer is None:
                    continue  # without the hashes no piece can be judged
                if not isinstance(answer[0], Piece) or not _is_piece(answer[1], layer, piece_size, number):
                    self._drop(publisher, f"piece {number} of the file {root[:16]}… was wrong")
                    continue
            return answer[1]
        return None

    def _candidates(self, root: str) -> list[str]:
        """Return whom to ask for a file: those that said that they have something of it, or else all."""
        owners = self._owners.get(root, ())
        here = self.publishers
        return [publisher for publisher in here if publisher in owners] or list(here)

    def _ask(self, publisher: str, question: Question) -> tuple[Answer, bytes] | None:
        with self._lock:
            calls = [call for call in self._calls.get(publisher, ()) if not call.ended.is_set()]
        with _first_free(calls) as call:
            return None if call is None else call.ask(question)

    def _drop(self, publisher: str, why: str) -> None:
        """End all calls of a member that lies, and take none of it for a while."""
        _log.warning("%s is not asked any more: %s", short(publisher), why)
        with self._lock:
            self._dropped[publisher] = time.monotonic() + _DROPPED_S
            calls = list(self._calls.get(publisher, ()))
        for call in calls:
            call.ended.set()

    def _keep_in(self, kept: OrderedDict, key: object, value: object) -> None:  # type: ignore[type-arg]
        with self._lock:
            kept[key] = value
            while len(kept) > _MOST_KEPT:
                kept.popitem(last=False)

    def close(self) -> None:
        """Ask no more; connections are closed by those who keep them."""
        with self._lock:
            calls = [call for calls in self._calls.values() for call in calls]
        for call in calls:
            call.ended.set()


@contextlib.contextmanager
def _first_free(calls: Sequence[_Call]) -> Iterator[_Call | None]:
    """Hold a connection that is not in use, or the first one as soon as it is free; nothing if that takes too long."""
    chosen = next((call for call in calls if call.turn.acquire(blocking=False)), None)
    if chosen is None and calls and calls[0].turn.acquire(timeout=_TURN_S):
        chosen = calls[0]
    try:
        yield chosen
    finally:
        if chosen is not None:
            chosen.turn.release()


def united(one: bytes, other: bytes) -> bytes:
    r"""Return the bits that are set in either of two sets.

    Example:
        >>> united(b"\x80", b"\x01\x40")
        b'\x81@'
    """
    length = max(len(one), len(other))
    numbers = [int.from_bytes(bits.ljust(length, b"\0"), "big") for bits in (one, other)]
    return (numbers[0] | numbers[1]).to_bytes(length, "big")


def _is_layer(hashes: bytes, root: str, piece_size: int) -> bool:
    """Tell whether these are the hashes of the pieces of a file, whatever its size is."""
    if not hashes or len(hashes) % 32:
        return False
    pieces = [hashes[start : start + 32] for start in range(0, len(hashes), 32)]
    return layer_root(pieces, piece_size, piece_size if len(pieces) == 1 else piece_size + 1) == root


def _is_alone(data: bytes, root: str, piece_size: int) -> bool:
    """Tell whether this is a file of a single piece."""
    return 0 < len(data) <= piece_size and piece_hash(data, piece_size, len(data)).hex() == root


def _is_piece(data: bytes, layer: bytes, piece_size: int, number: int) -> bool:
    wanted = layer[32 * number : 32 * number + 32]
    return 0 < len(data) <= piece_size and piece_hash(data, piece_size, piece_size + 1) == wanted
