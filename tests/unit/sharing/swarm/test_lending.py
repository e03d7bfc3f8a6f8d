"""A member that no one can dial gives pieces over connections that it opened itself; what it gives is verified."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike.core.errors import ConnectionLostError
from cargobike.sharing.daemon.control import ask_daemon
from cargobike.sharing.daemon.messages import AskHolders, Gossip, Holders
from cargobike.sharing.daemon.serving import Daemon
from cargobike.sharing.getting.front import get
from cargobike.sharing.getting.holders import holders
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.swarm.lenders import CALLS, Lenders
from cargobike.sharing.wire.messages import Answer, AskHave, AskLayer, AskPiece, Have, Layer, Piece, Question
from support.swarm import PIECE, fill, lab, project_at, publish, read_folder
from support.swarm_processes import wait_until

SIZES = {"a.bin": 6 * PIECE + 9, "small.txt": 100}
ELSEWHERE = "127.0.0.2"
"""Connections from here come from 127.0.0.1, where no one answers then: as behind a router that lets nothing in."""


@contextlib.contextmanager
def hidden_and_open(tmp_path: Path) -> Iterator[tuple[Daemon, Daemon]]:
    """Run a member that cannot be dialled, and one that it has dialled and lends to."""
    projects = [project_at(tmp_path / name) for name in ("hidden", "open")]
    with (
        Daemon(projects[1], lab()) as open_one,
        Daemon(projects[0], lab(), host=ELSEWHERE, peers=[open_one.address]) as hidden,
    ):
        fill(tmp_path / "source", SIZES)
        publish(hidden.membership, tmp_path / "source")
        for project in (projects[0], projects[1], projects[0]):
            ask_daemon(project, "lab", Gossip())
        wait_until(lambda: len(open_one.status().lenders) == 1, "the call of the hidden one")
        yield hidden, open_one


def test_others_and_the_open_member_itself_get_what_only_a_hidden_one_has(tmp_path: Path) -> None:
    with hidden_and_open(tmp_path) as (hidden, open_one):
        getter = project_at(tmp_path / "getter")
        options = {"network": lab(), "quiet": True, "timeout_s": 20.0}
        get("higgs", to=tmp_path / "to", peers=[open_one.address], project=getter, **options)  # type: ignore[arg-type]
        (holder,) = (one for one in holders("higgs", network=lab(), project=getter) if one.address == open_one.address)
        assert (holder.share, holder.through) == (1.0, (hidden.membership.identity.publisher,))
        get("higgs", to=tmp_path / "own", project=open_one.membership.project, **options)  # type: ignore[arg-type]
        assert hidden.status().lent_to == (open_one.address,)
        asked = ask_daemon(open_one.membership.project, "lab", AskHolders(reference="higgs"))
        assert isinstance(asked, Holders)
        assert ("calls us", 1.0) in [(one.address, one.share) for one in asked.holders]
        assert sum(one.pieces for one in hidden.status().given) >= 8
    assert read_folder(tmp_path / "to") == read_folder(tmp_path / "own") == read_folder(tmp_path / "source")


def test_a_member_that_can_be_dialled_is_not_asked_to_call(tmp_path: Path) -> None:
    projects = [project_at(tmp_path / name) for name in ("first", "second")]
    with Daemon(projects[0], lab()) as first, Daemon(projects[1], lab(), peers=[first.address]):
        for project in (projects[1], projects[0], projects[1]):
            ask_daemon(project, "lab", Gossip())
        assert first.status().lenders == ()


def test_one_that_does_not_relay_takes_no_calls(tmp_path: Path) -> None:
    projects = [project_at(tmp_path / name) for name in ("first", "second")]
    with (
        Daemon(projects[0], lab(), relays=False) as first,
        Daemon(projects[1], lab(), host=ELSEWHERE, peers=[first.address]) as second,
    ):
        for project in (projects[1], projects[0], projects[1]):
            ask_daemon(project, "lab", Gossip())
        assert second.status().lent_to == ()
        with second._call(first.address) as member, pytest.raises(ConnectionLostError):
            member.hear_question()


class _Lender:
    """A member at the other end of a call, without a connection."""

    address = "10.0.0.9:1"

    def __init__(self, holdings: Holdings, publisher: str = "ed25519:a", spoil: str = "") -> None:
        self.publisher, self._holdings, self._spoil = publisher, holdings, spoil
        self.num_asked = 0

    def ask(self, question: Question) -> tuple[Answer, bytes]:
        self.num_asked += 1
        if isinstance(question, AskHave):
            return Have(), b"nonsense" if self._spoil == "have" else b"\x91\xc4\x01\xfe"
        if isinstance(question, AskLayer):
            hashes = self._holdings.layer(question.root, question.piece_size) or b""
            return Layer(), hashes[::-1] if self._spoil == "layer" else hashes
        assert isinstance(question, AskPiece)
        data = bytes(self._holdings.read(question.root, question.piece_size, question.number) or b"")
        return Piece(), data[:-1] if self._spoil == "piece" else data


@contextlib.contextmanager
def lent(*members: _Lender) -> Iterator[Lenders]:
    """Yield lenders that keep calls of these members."""
    lenders = Lenders()
    threads = [threading.Thread(target=lenders.keep, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(lenders.publishers) == len({member.publisher for member in members}), "all calls")
    try:
        yield lenders
    finally:
        lenders.close()
        for thread in threads:
            thread.join()
    assert lenders.publishers == ()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Holdings, dict[str, str]]]:
    """Holdings, and the roots of their files by path."""
    fill(tmp_path / "source", SIZES)
    with Membership(project_at(tmp_path / "seed"), lab()) as membership:
        manifest = publish(membership, tmp_path / "source")
        yield membership.holdings, {file.path: file.root for file in manifest.files}


@pytest.mark.parametrize("spoil", ["have", "layer", "piece"])
def test_what_a_lender_gives_is_verified_and_one_that_lies_is_dropped(
    held: tuple[Holdings, dict[str, str]], spoil: str, caplog: pytest.LogCaptureFixture
) -> None:
    holdings, roots = held
    with lent(_Lender(holdings, "ed25519:a", spoil), _Lender(holdings, "ed25519:b")) as lenders:
        assert lenders.have([roots["a.bin"]], PIECE)["ed25519:b"] == [b"\xfe"]
        for number in range(7):
            assert lenders.read(roots["a.bin"], PIECE, number) == holdings.read(roots["a.bin"], PIECE, number)
        assert lenders.layer(roots["a.bin"], PIECE) == holdings.layer(roots["a.bin"], PIECE)
        assert lenders.read(roots["small.txt"], PIECE, 0) == holdings.read(roots["small.txt"], PIECE, 0)
        assert not lenders.wants("ed25519:a"), "one that lies is not asked to call again"
        assert lenders.read(roots["a.bin"], PIECE, 99) is None
    assert "is not asked any more" in caplog.text


def test_only_so_many_calls_of_a_member_are_kept(held: tuple[Holdings, dict[str, str]]) -> None:
    lender = _Lender(held[0])
    with lent(lender) as lenders:
        assert lenders.wants(lender.publisher)
        others = [threading.Thread(target=lenders.keep, args=(lender,)) for _ in range(CALLS + 2)]
        for thread in others:
            thread.start()
        wait_until(lambda: not lenders.wants(lender.publisher), "another call")
        wait_until(lambda: sum(thread.is_alive() for thread in others) == CALLS - 1, "the end of what is too much")
        lenders.close()
        for thread in others:
            thread.join()
