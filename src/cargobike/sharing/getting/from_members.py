"""Pieces from another member: questions are sent ahead, answers come in their order, one thread for each member."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Final

import msgspec

from cargobike.core.errors import AuthenticationError, CargobikeError, ConnectionLostError
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.getting.fetch import Fetch
from cargobike.sharing.pieces.plan import Plan
from cargobike.sharing.wire.member import Member, RefusedError, flags_of
from cargobike.sharing.wire.messages import MOST_ROOTS, AskHave, AskLayer, AskPiece, Have, Layer, Piece

_log = logging.getLogger(__name__)
_AHEAD_BYTES: Final = 16 << 20
_LEAST_AHEAD, _MOST_AHEAD = 3, 64
_UNVERIFIED: Final = 4
"""How many pieces of a member may wait to be verified: more would only fill memory."""
_LOOK_AGAIN_S: Final = 3.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0
_bit_sets = msgspec.msgpack.Decoder(list[bytes])


class WrongAnswerError(ConnectionError):
    """A member sends what an honest one never sends."""


class MemberSource:
    """Gets pieces from the member at one address until the fetch is over; `run` is called in a thread of its own.

    Args:
        address: Where it is.
        fetch: What is missing.
        dial: Connects to it.
        hashers: Threads that verify.
        greeted: Called with each connection, before anything else is asked, and while nothing comes.
        may_receive: Waits until so many bytes may be received.
    """

    def __init__(
        self,
        address: str,
        fetch: Fetch,
        dial: Callable[[str], Member],
        hashers: Executor,
        *,
        greeted: Callable[[Member], None] = lambda _member: None,
        may_receive: Callable[[int], None] = lambda _count: None,
    ) -> None:
        self.address = address
        self._fetch, self._dial, self._hashers, self._greeted = fetch, dial, hashers, greeted
        self._may_receive = may_receive
        self._member: Member | None = None
        self._ahead = min(_MOST_AHEAD, max(_LEAST_AHEAD, _AHEAD_BYTES // fetch.plan.piece_size))

    def run(self) -> None:
        """Connect, get, and connect again when the member was gone."""
        pause_s, fetch = _FIRST_PAUSE_S, self._fetch
        while not fetch.is_over:
            try:
                self._connect_and_get()
                pause_s = _FIRST_PAUSE_S
            except WrongAnswerError as error:
                fetch.blame(self.address, str(error))
            except AuthenticationError as error:
                fetch.leave(self.address, f"refused: {error}")
                return
            except (OSError, ConnectionLostError) as error:
                fetch.leave(self.address, f"gone: {error}")
            except CargobikeError as error:
                fetch.fail(error)
            if fetch.tally(self.address).blame:
                return
            self._rest(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def shut(self) -> None:
        """End a wait for the member, from another thread."""
        if self._member is not None:
            self._member.channel.shut()

    def _connect_and_get(self) -> None:
        self._fetch.note_state(self.address, "connecting")
        with self._dial(self.address) as member:
            self._member = member
            try:
                self._greeted(member)
                self._get(member)
            finally:
                self._member = None
                self._fetch.leave(self.address)

    def _get(self, member: Member) -> None:
        fetch, source = self._fetch, self.address
        self._get_layers(member)
        fetch.join(source, ask_flags(member, fetch.plan)[0])
        fetch.note_state(source, "connected")
        looked_s = time.monotonic()
        asked: deque[int] = deque()
        verifying: deque[Future[bool]] = deque()
        while not fetch.is_over and not fetch.tally(source).blame:
            for piece in fetch.take(source, self._ahead - len(asked)):
                spot = fetch.plan.spot(piece)
                member.say(AskPiece(root=spot.root, piece_size=fetch.plan.piece_size, number=spot.number))
                asked.append(piece)
            if asked:
                self._receive(member, asked.popleft(), verifying)
                continue
            with fetch.changed:
                if not fetch.is_over:
                    fetch.changed.wait(1.0)
            if time.monotonic() - looked_s > _LOOK_AGAIN_S:
                if fetch.files_without_layer():
                    self._get_layers(member)
                self._greeted(member)
                fetch.join(source, ask_flags(member, fetch.plan)[0])
                looked_s = time.monotonic()
        while verifying:
            verifying.popleft().result()

    def _receive(self, member: Member, piece: int, verifying: deque[Future[bool]]) -> None:
        fetch, source = self._fetch, self.address
        try:
            answer, length = member.hear()
        except RefusedError as error:
            fetch.note_state(source, "paused" if error.is_paused else "connected")
            fetch.lacks(source, piece)
            return
        if not isinstance(answer, Piece) or length != fetch.plan.spot(piece).length:
            raise WrongAnswerError("it sent something else than the piece that was asked for")
        self._may_receive(length)
        data = bytearray(length)
        member.channel.read_into(memoryview(data))
        fetch.note_state(source, "connected")
        verifying.append(self._hashers.submit(fetch.deliver, source, piece, data))
        while verifying and (verifying[0].done() or len(verifying) > _UNVERIFIED):
            verifying.popleft().result()

    def _get_layers(self, member: Member) -> None:
        """Get the hashes of the pieces of files of which they are missing; one member at a time does."""
        fetch = self._fetch
        with fetch.layers_turn:
            for index in fetch.files_without_layer():
                if fetch.is_over:
                    return
                file = fetch.plan.files[index]
                try:
                    answer, hashes = member.ask(AskLayer(root=file.root, piece_size=fetch.plan.piece_size))
                except RefusedError:
                    continue  # it may have nothing of this file
                if not isinstance(answer, Layer) or not fetch.use_layer(index, hashes):
                    raise WrongAnswerError(f"the hashes of {file.path} were wrong")

    def _rest(self, pause_s: float) -> None:
        until = time.monotonic() + pause_s
        with self._fetch.changed:
            while not self._fetch.is_over and (left := until - time.monotonic()) > 0:
                self._fetch.changed.wait(left)


def ask_flags(member: Member, plan: Plan) -> tuple[list[bool], set[str]]:
    """Ask which pieces of a publication a member has, and for which other members it passes them on.

    Raises:
        WrongAnswerError: If it does not say so.
    """
    flags: list[bool] = []
    through: set[str] = set()
    for start in range(0, len(plan.files), MOST_ROOTS):
        files = plan.files[start : start + MOST_ROOTS]
        answer, body = member.ask(AskHave(roots=tuple(file.root for file in files), piece_size=plan.piece_size))
        try:
            sets = _bit_sets.decode(body)
        except UNDECODABLE as error:
            raise WrongAnswerError("it does not say what it has") from error
        if not isinstance(answer, Have) or len(sets) != len(files):
            raise WrongAnswerError("it does not say what it has")
        through.update(answer.through)
        for index, bits in enumerate(sets, start):
            flags += flags_of(bits, len(plan.pieces_of(index)))
    return flags, through
