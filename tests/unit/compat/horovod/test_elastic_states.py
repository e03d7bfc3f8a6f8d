"""States and `elastic.run`, without other ranks: what a launcher would say is said by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cargobike.compat.horovod.common.elastic import ObjectState, State, run_fn
from cargobike.compat.horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from cargobike.core.running import member
from cargobike.training.regrouping.member import Regrouping
from cargobike.training.regrouping.messages import Changed, FromRank, Progress, ToRank, World


class ByHand:
    """A line on which the test speaks for the driver."""

    def __init__(self) -> None:
        self.said: list[FromRank] = []
        self.told: list[ToRank] = []

    def say(self, body: FromRank) -> None:
        self.said.append(body)

    def wait(self, fits: Callable[[ToRank], bool], timeout_s: float) -> ToRank | None:
        return next(iter(self.take(fits)), None)

    def take(self, fits: Callable[[ToRank], bool]) -> list[ToRank]:
        taken = [body for body in self.told if fits(body)]
        self.told = [body for body in self.told if not fits(body)]
        return taken


@pytest.fixture
def line() -> Iterator[ByHand]:
    line = ByHand()
    here = Regrouping(line)
    here.generation = 0
    member.enter(here)
    yield line
    member.enter(None)


def same(given: Any) -> Any:
    return given


def test_what_was_not_committed_is_undone() -> None:
    state = ObjectState(same, lambda: 0, epoch=0, seen=[])
    state.epoch, state.seen = 1, [1]
    state.commit()
    state.epoch = 2
    state.seen.append(2)
    state.restore()
    assert (state.epoch, state.seen) == (1, [1])
    state.seen.append(3)
    state.restore()
    assert state.seen == [1]


def test_sync_takes_over_what_rank_0_has_and_keeps_it() -> None:
    state = ObjectState(lambda _: {"epoch": 7}, lambda: 1, epoch=0)
    state.sync()
    assert state.epoch == 7
    state.epoch = 9
    state.restore()
    assert state.epoch == 7


def test_a_commit_tells_the_launcher_that_there_is_progress_but_not_each_time(line: ByHand) -> None:
    state = ObjectState(same, lambda: 0, epoch=0)
    for _ in range(5):
        state.commit()
    assert line.said == [Progress()]


@pytest.mark.parametrize("only_leave", [True, False])
def test_ranks_that_come_or_go_interrupt_at_the_next_commit(line: ByHand, only_leave: bool) -> None:
    state = ObjectState(same, lambda: 0, epoch=0)
    state.commit()
    line.told.append(Changed(0, only_leave))
    with pytest.raises(HostsUpdatedInterrupt) as change:
        state.commit()
    assert change.value.skip_sync is only_leave
    state.commit()


def test_what_concerns_an_earlier_world_does_not_interrupt(line: ByHand) -> None:
    state = ObjectState(same, lambda: 0, epoch=0)
    line.told.append(Changed(-1, False))
    state.commit()
    assert line.told == []


def test_all_ranks_follow_what_rank_0_has_heard(line: ByHand) -> None:
    state = ObjectState(lambda _: {"only_leave": False}, lambda: 1, epoch=0)
    with pytest.raises(HostsUpdatedInterrupt):
        state.check_host_updates()


class Told(State):
    """Notes what is done with it."""

    def __init__(self) -> None:
        super().__init__(same, lambda: 0)
        self.done: list[str] = []

    def save(self) -> None:
        self.done.append("save")

    def restore(self) -> None:
        self.done.append("restore")

    def sync(self) -> None:
        self.done.append("sync")


@pytest.mark.parametrize(
    ("errors", "done"),
    [
        ([], ["sync"]),
        ([HorovodInternalError("gone")], ["sync", "restore", "reset", "callback", "sync"]),
        ([HostsUpdatedInterrupt(False)], ["sync", "reset", "callback", "sync"]),
        ([HostsUpdatedInterrupt(True)], ["sync", "reset", "callback"]),
        (
            [HostsUpdatedInterrupt(True), HorovodInternalError("gone")],
            ["sync", "reset", "callback", "restore", "reset", "callback", "sync"],
        ),
    ],
)
def test_a_function_begins_again_with_its_state(line: ByHand, errors: list[Exception], done: list[str]) -> None:
    state = Told()
    state.register_reset_callbacks([lambda: state.done.append("callback")])

    def train(given: Told, more: int, *, other: int) -> int:
        if errors:
            raise errors.pop(0)
        return more + other

    assert run_fn(train, lambda: state.done.append("reset"))(state, 1, other=2) == 3
    assert state.done == done


def test_errors_of_the_function_itself_come_out(line: ByHand) -> None:
    def train(state: Told) -> None:
        raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        run_fn(train, lambda: None)(Told())


def test_without_a_launcher_that_could_find_others_a_loss_comes_out() -> None:
    def train(state: Told) -> None:
        raise HorovodInternalError("rank 1 is gone")

    with pytest.raises(HorovodInternalError, match="rank 1 is gone"):
        run_fn(train, lambda: None)(Told())


def test_a_rank_takes_its_place_in_each_world(line: ByHand) -> None:
    here = member.current()
    assert isinstance(here, Regrouping)
    line.told += [World(0, 0, ("old",), "old:1"), World(1, 2, ("a", "b", "b"), "a:7")]
    here.meet()
    assert (here.rank, here.world_size, here.local_rank, here.local_world_size) == (2, 3, 1, 2)
    assert (here.generation, here.meeting_place) == (1, "a:7")
    assert type(line.said[-1]).__name__ == "Ready"
