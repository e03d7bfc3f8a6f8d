"""What members of a network say to each other once they are connected, and what users and files say to a daemon."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from cargobike.core.errors import CargobikeError, ConnectionLostError, InvalidInputError
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.daemon import messages as control
from cargobike.sharing.daemon.limiting import as_limits, merged, read_limits
from cargobike.sharing.getting.from_members import ask_flags
from cargobike.sharing.governor.limits import parse_hours, parse_rate
from cargobike.sharing.hashing import PieceVerifier
from cargobike.sharing.network.beacons import make_beacon, read_beacon
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.network.network import open_network
from cargobike.sharing.network.peers import Peer, PeerBook
from cargobike.sharing.pieces.plan import Plan
from cargobike.sharing.records import sign
from cargobike.sharing.shapes import Manifest
from cargobike.sharing.swarm.answering import Answers, Giving, dialled_at
from cargobike.sharing.swarm.gossip import spread
from cargobike.sharing.swarm.lenders import Lenders, united
from cargobike.sharing.wire import messages as wire
from cargobike.sharing.wire.member import Member, flags_of
from cargobike.training.wire.channel import Channel
from faults.fuzzing.target import Target
from support.publications import identity_of, manifest
from support.swarm import PIECE, fill, lab, project_at, publish

_ALICE = identity_of("alice")
_GONE = (CargobikeError, OSError)
"""What ends one conversation, and nothing else."""


@contextmanager
def sharing_wire_targets(folder: Path) -> Iterator[list[Target]]:
    """Yield both ends of conversations, which act on what they hear, and the parsers of what users and files say."""
    logger = logging.getLogger("cargobike.sharing")
    logger.setLevel(logging.CRITICAL)  # each input may make it warn
    fill(folder / "source", {"a.bin": 3 * PIECE + 1, "b.bin": 10})
    with Membership(project_at(folder / "member"), lab()) as here:
        known = publish(here, folder / "source")
        yield [
            Target("share-greeting", lambda data: _greet(here, data), _greetings(), "msgpack", _GONE, 40),
            Target("share-question", lambda data: _question(here, data), _questions(known), "msgpack", _GONE, 40),
            Target("share-answer", lambda data: _answer(here, known, data), _answers(), "msgpack", _GONE, 40),
            Target("share-control", _control, _requests(), "json", (CargobikeError, *UNDECODABLE), 40),
            Target("share-limits", _limit, (b"20MB/s", b"mon-fri 08:00-18:00 send=2MB/s receive=none"), "text", (), 40),
            Target("share-beacon", _beacon, (make_beacon(lab(), _ALICE, "127.0.0.1", 7777),), "bytes", (), 20),
            Target("share-files", lambda data: _files(folder, data), _kept_files(), "json", (CargobikeError,), 20),
        ]
    logger.setLevel(logging.NOTSET)


class _Spoken:
    """A channel whose other end says the same again and again, a few times."""

    peer, binding, socket = "127.0.0.1:7777", b"", None

    def __init__(self, header: bytes, body: bytes = b"", times: int = 1) -> None:
        self._header, self._body, self._left = header, body, times
        self._position = 0

    def receive_header(self) -> tuple[bytes, int]:
        if not self._left:
            raise ConnectionLostError("the other end has closed")
        self._left -= 1
        self._position = 0
        return self._header, len(self._body)

    def read_into(self, target: memoryview) -> None:
        part = self._body[self._position : self._position + len(target)]
        if len(part) < len(target):
            raise ConnectionLostError("a body is shorter than what it was to hold")
        target[:] = part
        self._position += len(part)

    def send(self, header: bytes, body: list[memoryview]) -> int:
        return len(header) + sum(map(len, body))

    def wait_in_kernel(self, timeout_s: float) -> None:
        pass


def _member(data: bytes, times: int = 1) -> Member:
    """Return a member that says what is a header and a body in a list, or else a header alone."""
    try:
        header, body = msgspec.msgpack.decode(data, type=tuple[msgspec.Raw, bytes])
    except UNDECODABLE:
        return Member(cast(Channel, _Spoken(data, b"", times)), _ALICE.publisher)
    return Member(cast(Channel, _Spoken(bytes(header), body, times)), _ALICE.publisher)


def _greet(here: Membership, data: bytes) -> None:
    member = _member(data)
    member.hear_greeting()
    address = dialled_at(member)
    if address:
        here.book.hear(address)


def _question(here: Membership, data: bytes) -> None:
    Answers(here.catalogue, here.holdings, Giving(), lenders=Lenders()).talk(_member(data))


def _answer(here: Membership, known: Manifest, data: bytes) -> None:
    """Take it for the answer to each question that a getter, a gossip and one who passes pieces on ask."""
    plan = Plan.of(known)
    mistakes: list[BaseException] = []
    for ask in (
        lambda: ask_flags(_member(data), plan),
        lambda: spread(_member(data, 3), here.catalogue),
        lambda: _layer(plan, _member(data).ask(wire.AskPeers())),
        lambda: _lent(plan, data),
    ):
        try:
            ask()
        except _GONE as error:
            mistakes.append(error)
    if len(mistakes) == 4:
        raise mistakes[0]


def _layer(plan: Plan, said: tuple[wire.Answer, bytes]) -> None:
    answer, body = said
    if isinstance(answer, wire.Peers):
        for address in answer.addresses:
            assert len(address) <= 280
    if isinstance(answer, wire.Layer):
        pieces = [body[start : start + 32] for start in range(0, len(body), 32)]
        for file in plan.files:
            PieceVerifier(file.root, file.size, plan.piece_size, pieces)
    if isinstance(answer, wire.Have):
        assert len(flags_of(body, 7)) == 7
        assert len(united(body, b"\x80")) >= 1


def _lent(plan: Plan, data: bytes) -> None:
    from cargobike.sharing.swarm.lenders import _Call

    lenders, root = Lenders(), plan.files[0].root
    lenders._calls["lender"] = [_Call(_member(data, 3))]
    lenders.have([root], plan.piece_size)
    lenders.layer(root, plan.piece_size)
    assert lenders.read(root, plan.piece_size, 0) is None, "nothing that was not verified is passed on"


def _control(data: bytes) -> None:
    request = control.requests.decode(data)
    if isinstance(request, control.SetLimits):
        as_limits(merged(control.SetLimits(send="1MB/s"), request))


def _limit(data: bytes) -> None:
    text = data.decode(errors="replace")
    for read in (parse_rate, parse_hours, lambda text: as_limits(control.SetLimits(send=text, hours=(text,)))):
        try:
            read(text)
        except InvalidInputError:
            continue


def _beacon(data: bytes) -> None:
    signed = data[:-32]
    proved = signed + hmac.digest(lab().derived(b"beacon"), signed, "sha256")
    for one in (data, proved):
        found = read_beacon(lab(), one, "127.0.0.1")
        assert found is None or (found[0] == "127.0.0.1" and 0 < found[1] < 65536)


def _files(folder: Path, data: bytes) -> None:
    """Read files that a daemon has written, or a user; those of a daemon are found again when they are damaged."""
    path = folder / "kept.json"
    path.write_bytes(data)
    book = PeerBook(path)
    book.told()
    book.addresses()
    (folder / "limits.json").write_bytes(data)
    as_limits(read_limits(folder))
    open_network(project_at(folder / "member"), "other", members_file=path)


def _packed(message: Any, body: bytes = b"") -> bytes:
    return msgspec.msgpack.encode([msgspec.Raw(wire.encode(message)), body])


def _greetings() -> tuple[bytes, ...]:
    full = wire.Greeting(port=7777, host="host", is_giver=True, wants_call=True, may_be_asked=True)
    return tuple(map(_packed, (wire.Greeting(), full)))


def _questions(known: Manifest) -> tuple[bytes, ...]:
    root, size = known.files[0].root, known.piece_size
    records = msgspec.msgpack.encode([sign(manifest(_ALICE), _ALICE)])
    return (
        _packed(wire.AskEntries(newest={_ALICE.publisher: 1})),
        _packed(wire.Offer(), records),
        _packed(wire.AskHave(roots=(root, "0" * 64), piece_size=size)),
        _packed(wire.AskLayer(root=root, piece_size=size)),
        _packed(wire.AskPiece(root=root, piece_size=size, number=1)),
        _packed(wire.AskPeers()),
    )


def _answers() -> tuple[bytes, ...]:
    records = msgspec.msgpack.encode([sign(manifest(_ALICE, 1), _ALICE)])
    return (
        _packed(wire.Entries(newest={_ALICE.publisher: 3}, more=True), records),
        _packed(wire.Taken(count=1)),
        _packed(wire.Have(through=(_ALICE.publisher,)), msgspec.msgpack.encode([b"\xf0", b"\x80"])),
        _packed(wire.Layer(), bytes(4 * 32)),
        _packed(wire.Piece(), b"bytes"),
        _packed(wire.Peers(addresses=("127.0.0.1:7777", "host:1"))),
        _packed(wire.Refused(why="it is paused", is_paused=True)),
    )


def _requests() -> tuple[bytes, ...]:
    limits = control.SetLimits(
        send="20MB/s", receive="none", peers={"PnDm5hFmMr": "1MB/s"}, hours=("sat,sun 22:00-06:00 send=0",)
    )
    others = (control.AddPeer(address="10.0.0.5:7777"), control.AskHolders(reference="higgs@alice:3"), control.Stop())
    return tuple(map(msgspec.json.encode, (limits, *others)))


def _kept_files() -> tuple[bytes, ...]:
    peers = {"10.0.0.5:7777": Peer(publisher=_ALICE.publisher, met_at=1.0, is_named=True)}
    return (msgspec.json.encode(peers), msgspec.json.encode(control.SetLimits(send="1MB/s")), b'"ed25519:x"')
