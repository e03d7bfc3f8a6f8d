"""The board on which members of a gang leave small things for each other."""

from __future__ import annotations

from cargobike.experiments.driving.board import Board
from cargobike.experiments.scheduling.events import Run
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.trial.messages import Gathered, Published, Wanted

WORKERS = ("w0", "w1", "s0")


def opened(attempt: int = 1) -> Board:
    board = Board()
    board.open(Run(7, attempt, WORKERS, ("a", "a", "b"), 1), Plan(workers=2, gang=2, servers=1))
    return board


def publish(board: Board, worker: str, value: bytes, name: str = "x", attempt: int = 1) -> dict[str, Gathered]:
    return dict(board.take(worker, 7, attempt, Published(name, value)))


def want(board: Board, worker: str, of: str = "all", name: str = "x", **options: bool) -> dict[str, Gathered]:
    return dict(board.take(worker, 7, 1, Wanted(name, of, **options)))


def test_an_answer_comes_when_the_last_has_published() -> None:
    board = opened()
    assert not want(board, "w0")
    assert not publish(board, "s0", b"S")
    assert not publish(board, "w1", b"1")
    assert publish(board, "w0", b"0")["w0"].values == [b"0", b"1", b"S"]
    assert want(board, "w1")["w1"].values == [b"0", b"1", b"S"]


def test_some_can_be_asked_for() -> None:
    board = opened()
    publish(board, "s0", b"S")
    assert want(board, "w0", "servers")["w0"].values == [b"S"]
    assert not want(board, "w1", "workers")
    publish(board, "w0", b"0")
    assert publish(board, "w1", b"1")["w1"].values == [b"0", b"1"]


def test_who_waits_no_longer_learns_who_is_missing() -> None:
    board = opened()
    publish(board, "w1", b"1")
    want(board, "w0")
    assert want(board, "w0", at_once=True)["w0"].values == [None, b"1", None]
    publish(board, "s0", b"S")
    assert not publish(board, "w0", b"0"), "it does not wait any more"


def test_what_all_have_seen_is_forgotten() -> None:
    board = opened()
    for worker in ("w0", "w1"):
        publish(board, worker, b"")
    assert want(board, "w0", "workers", last=True)
    assert want(board, "w1", "workers", last=True)
    assert not want(board, "w1", "workers"), "a new question begins anew"


def test_messages_of_other_attempts_and_strangers_are_ignored() -> None:
    board = opened(attempt=2)
    assert not publish(board, "w0", b"0", attempt=1)
    assert not board.take("w9", 7, 2, Published("x", b""))
    assert board.take("w0", 7, 2, Wanted("x", at_once=True))[0][1].values == [None, None, None]


def test_members_know_their_place() -> None:
    places = Board().open(
        Run(0, 1, ("w0", "w1", "w2", "s0"), ("a", "b", "b", "a"), 1), Plan(workers=3, gang=3, servers=1)
    )
    assert [place.role for place in places] == ["worker", "worker", "worker", "server"]
    assert [(place.local_rank, place.local_world_size) for place in places[:3]] == [(0, 1), (0, 2), (1, 2)]
    assert len({place.secret for place in places}) == 1
    assert len(places[0].secret) == 32
    assert places[0].secret not in repr(Board().open(Run(0, 1, ("w0",), ("a",)), Plan(workers=1))).encode()
