"""Which ranks make up the next world: the roster decides without a clock, a socket or a process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.training.regrouping.messages import Broken, Changed, Dismissed, World
from cargobike.training.regrouping.roster import (
    BREAKS_IN_A_ROW,
    SYMPTOM_S,
    Command,
    End,
    Finish,
    GiveUp,
    Roster,
    Say,
    Start,
    State,
    Terms,
)


class Stage:
    """A roster, and workers that do as they are told."""

    def __init__(self, start: int, least: int, most: int, **terms: object) -> None:
        self.roster = Roster(Terms(start, least, most, **terms))  # type: ignore[arg-type]
        self.now = 0.0
        self.names = 0
        self.last: list[Command] = []

    def step(self, seconds: float = 0.0) -> list[Command]:
        """Decide, and start what is to be started."""
        self.now += seconds
        self.last = self.roster.decide(self.now)
        for command in self.last:
            if isinstance(command, Start):
                self.names += 1
                self.roster.started(f"w{self.names}")
                self.roster.came(f"w{self.names}", "tower")
        return self.last

    def ready(self, *names: str) -> list[Command]:
        for name in names:
            self.roster.ready(name, f"tower:{name}", self.now)
        return self.step()

    @property
    def world(self) -> dict[str, World]:
        return {say.worker: say.body for say in self.last if isinstance(say, Say) and isinstance(say.body, World)}

    def told(self, kind: type) -> set[str]:
        return {say.worker for say in self.last if isinstance(say, Say) and isinstance(say.body, kind)}

    @property
    def given_up(self) -> GiveUp | None:
        return next((command for command in self.last if isinstance(command, GiveUp)), None)


def running(start: int = 3, least: int = 2, most: int = 3, **terms: object) -> Stage:
    """Return a stage on which the first world has formed."""
    stage = Stage(start, least, most, **terms)
    assert stage.step() == [Start()] * start
    stage.ready(*(f"w{number}" for number in range(1, start + 1)))
    assert len(stage.world) == start
    return stage


def test_the_first_world_waits_for_all_that_it_begins_with() -> None:
    stage = Stage(3, 1, 3, start_s=60)
    stage.step()
    assert stage.ready("w1", "w2") == []
    stage.ready("w3")
    assert [stage.world[name].rank for name in ("w1", "w2", "w3")] == [0, 1, 2]
    assert {world.place for world in stage.world.values()} == {"tower:w1"}


def test_the_first_world_begins_with_fewer_when_time_is_up_if_they_are_enough() -> None:
    stage = Stage(3, 2, 3, start_s=60)
    stage.step()
    stage.ready("w1", "w2")
    stage.step(61)
    assert len(stage.world) == 2


def test_ranks_that_are_left_go_on_at_once_and_keep_their_order() -> None:
    stage = running()
    stage.roster.lost("w1", "was ended by SIGKILL", stage.now)
    stage.step()
    assert stage.told(Broken) == {"w2", "w3"}
    assert Start() in stage.last  # a replacement, for which the others do not wait
    stage.ready("w3", "w2")
    assert {name: world.rank for name, world in stage.world.items()} == {"w2": 0, "w3": 1}
    assert stage.world["w2"].generation == 1


def test_a_newcomer_is_announced_and_joins_behind_those_that_have_the_state() -> None:
    stage = running()
    stage.roster.lost("w1", "was ended by SIGKILL", stage.now)
    stage.step()
    stage.ready("w2", "w3")
    stage.ready("w4")
    assert stage.told(Changed) == {"w2", "w3"}
    assert stage.step() == []  # once
    stage.ready("w2", "w3")
    assert {name: world.rank for name, world in stage.world.items()} == {"w2": 0, "w3": 1, "w4": 2}


def test_fewer_than_the_least_wait_for_a_replacement_and_then_give_up_naming_who_was_lost() -> None:
    stage = running(2, 2, 2, wait_s=30)
    stage.roster.lost("w2", "was ended by SIGKILL", stage.now)
    stage.step()
    assert stage.ready("w1") == []
    stage.step(31)
    assert stage.given_up is not None
    assert "1 of at least 2 ranks" in stage.given_up.why
    assert "rank 1 on tower was ended by SIGKILL" in stage.given_up.why


def test_a_rank_that_does_not_come_back_from_a_broken_world_is_ended() -> None:
    stage = running(wait_s=30)
    stage.roster.lost("w1", "was ended by SIGKILL", stage.now)
    stage.step()
    stage.ready("w2")
    commands = stage.step(31)
    assert commands == [End("w3")]


def test_an_error_of_a_rank_ends_the_job_and_is_named() -> None:
    stage = running()
    stage.roster.failed("w2", "ValueError: seven", 1, stage.now)
    stage.step()
    assert stage.given_up is None  # it may follow from a loss that is not known yet
    stage.step(SYMPTOM_S)
    assert stage.given_up == GiveUp("rank 1 on tower: ValueError: seven", 1, "tower", 1)


def test_an_error_that_follows_from_a_loss_is_a_loss() -> None:
    stage = running(3, 1, 3)
    stage.roster.failed("w2", "connection closed by peer", 1, stage.now)
    stage.roster.lost("w3", "was ended by SIGKILL", stage.now)
    stage.step(SYMPTOM_S)
    assert stage.given_up is None
    stage.ready("w1")
    assert set(stage.world) == {"w1"}


def test_a_job_that_is_not_elastic_ends_with_the_first_loss() -> None:
    stage = running(2, 2, 2, is_elastic=False)
    stage.roster.lost("w2", "was ended by SIGKILL", stage.now, 137)
    stage.step()
    assert stage.given_up == GiveUp("rank 1 on tower: its process was ended by SIGKILL", 1, "tower", 137)


@pytest.mark.parametrize("limit", [0, 1])
def test_ranks_change_no_more_often_than_allowed(limit: int) -> None:
    stage = running(3, 1, 3, reset_limit=limit)
    for number in range(limit + 1):
        assert stage.given_up is None
        stage.roster.progressed()
        stage.roster.lost(f"w{number + 1}", "was ended by SIGKILL", stage.now)
        stage.step()
        stage.ready(*(name for name, worker in stage.roster.workers.items() if worker.state is State.TRAINING))
    assert stage.given_up is not None
    assert "reset_limit" in stage.given_up.why


def test_losses_without_progress_end_the_job() -> None:
    stage = running(2, 1, 2)
    for _ in range(BREAKS_IN_A_ROW):
        assert stage.given_up is None
        training = [name for name, worker in stage.roster.workers.items() if worker.state is State.TRAINING]
        stage.roster.lost(training[-1], "was ended by SIGKILL", stage.now)
        stage.step()
        stage.ready(*(name for name, worker in stage.roster.workers.items() if worker.state is not State.DONE))
    assert stage.given_up is not None
    assert "without progress" in stage.given_up.why


def test_hosts_that_shrink_let_the_youngest_ranks_go_at_the_next_commit() -> None:
    stage = running(3, 1, 3)
    stage.roster.resize(2)
    stage.step()
    assert stage.told(Changed) == {"w1", "w2", "w3"}
    assert all(say.body.only_leave for say in stage.last if isinstance(say, Say) and isinstance(say.body, Changed))
    stage.ready("w1", "w2", "w3")
    told = stage.told(Dismissed) | set(stage.world)
    assert stage.told(Dismissed) == {"w3"}
    assert told == {"w1", "w2", "w3"}
    stage.roster.returned("w3")
    stage.roster.returned("w1")
    stage.roster.returned("w2")
    assert stage.step() == [Finish()]


def test_all_that_have_returned_are_the_end() -> None:
    stage = running(2, 1, 2)
    stage.roster.returned("w1")
    assert stage.step() == []
    stage.roster.returned("w2")
    assert stage.step() == [Finish()]


def test_those_that_come_when_others_are_done_are_turned_away() -> None:
    stage = running(3, 1, 3)
    stage.roster.lost("w3", "was ended by SIGKILL", stage.now)
    stage.step()
    stage.ready("w1", "w2")
    stage.roster.returned("w1")
    stage.step()
    assert stage.told(Dismissed) == {"w4"}
    stage.roster.returned("w2")
    assert stage.step() == [Finish()]


@given(st.data())
def test_worlds_have_each_rank_once_and_never_fewer_than_the_least(data: st.DataObject) -> None:
    least = data.draw(st.integers(1, 3))
    start = data.draw(st.integers(least, 4))
    stage = Stage(start, least, data.draw(st.integers(start, 5)))
    worlds = 0
    for _ in range(data.draw(st.integers(1, 40))):
        workers = stage.roster.workers
        names = list(workers)
        event = data.draw(st.sampled_from(["ready", "lost", "wait", "resize", "progress"]))
        if event == "ready" and names:
            name = data.draw(st.sampled_from(names))
            if workers[name].state is not State.READY and not workers[name].is_dismissed:
                stage.roster.ready(name, name, stage.now)
        elif event == "lost" and names:
            stage.roster.lost(data.draw(st.sampled_from(names)), "is gone", stage.now)
        elif event == "resize":
            stage.roster.resize(data.draw(st.integers(0, 6)))
        elif event == "progress":
            stage.roster.progressed()
        stage.step(data.draw(st.sampled_from([0.0, 1.0])))
        if stage.world:
            worlds += 1
            assert sorted(world.rank for world in stage.world.values()) == list(range(len(stage.world)))
            assert least <= len(stage.world) <= stage.roster.terms.most
            assert {len(world.hosts) for world in stage.world.values()} == {len(stage.world)}
            assert len({world.generation for world in stage.world.values()}) == 1
        if stage.given_up:
            break
