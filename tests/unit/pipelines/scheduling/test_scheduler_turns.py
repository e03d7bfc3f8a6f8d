"""Schedulers in virtual time: two of them, killed at any moment, with clocks apart, beside a storage that fails."""

from __future__ import annotations

import contextlib
import itertools
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import StoreError
from cargobike.core.registering.triggers import Trigger
from cargobike.pipelines.scheduling.keeping.book import FOLDER, Kept
from cargobike.pipelines.scheduling.keeping.lease import SILENT_S
from cargobike.pipelines.scheduling.policy.events import PauseAsked
from cargobike.pipelines.scheduling.policy.policy import handle
from cargobike.pipelines.scheduling.policy.state import Firing, State
from cargobike.pipelines.scheduling.process.runs import RunSeen
from cargobike.pipelines.scheduling.process.scheduler import Scheduler
from support.virtual_schedulers import Killed, World

START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
TRIGGER = Trigger("arrived", "in")


def finish(world: World) -> None:
    for run in world.runs.working:
        world.runs.end(run)


def test_a_schedule_runs_at_its_times() -> None:
    world = World(START)
    world.schedule(every_s=60.0)
    scheduler = world.scheduler()
    for _ in range(3):
        world.pass_time(60, scheduler)
        finish(world)
    assert world.runs.ids == [f"retrain-20260101T000{n}00" for n in (1, 2, 3)]
    world.pass_time(2, scheduler)
    assert [firing.outcome for firing in world.state().over] == ["completed"] * 3
    assert ("retrain", "retrain-20260101T000100 started") in world.said


def test_of_two_schedulers_one_is_at_work_and_the_other_takes_over_when_it_dies() -> None:
    world = World(START)
    world.schedule(every_s=60.0, overlap="queue")
    first, second = world.scheduler(), world.scheduler()
    world.pass_time(150, first, second)
    finish(world)
    assert world.runs.ids == ["retrain-20260101T000100"]
    assert world.said.count(("", "at work")) == 1
    world.pass_time(SILENT_S - 11, second)
    assert world.said.count(("", "at work")) == 1
    world.pass_time(12, second)
    assert world.said.count(("", "at work")) == 2
    for _ in range(3):
        world.pass_time(30, second)
        finish(world)
    assert world.runs.ids == [f"retrain-20260101T000{n}00" for n in (1, 2, 3, 4)]


def test_a_scheduler_that_leaves_is_replaced_at_once() -> None:
    world = World(START)
    world.schedule(every_s=5.0)
    first, second = world.scheduler(), world.scheduler()
    world.pass_time(3, first, second)
    first.end()
    world.pass_time(11, second)
    assert world.runs.ids == ["retrain-20260101T000005"]


def test_a_scheduler_that_slept_through_its_lease_does_nothing_when_it_wakes() -> None:
    world = World(START)
    world.schedule(every_s=60.0, overlap="queue")
    first, second = world.scheduler(), world.scheduler()
    world.pass_time(59, first, second)
    world.pass_time(SILENT_S + 40, second)
    first.turn()
    assert world.said[-1] == ("", "another scheduler is at work; waiting for it to end")
    assert world.runs.ids == ["retrain-20260101T000100"]


@pytest.mark.parametrize("ahead_s", [-3600.0, -30.0, 30.0, 3600.0, 400 * 86400.0])
def test_clocks_apart_run_nothing_twice_and_silence_nothing(ahead_s: float) -> None:
    world = World(START)
    world.schedule(every_s=600.0)
    first, second = world.scheduler(ahead_s), world.scheduler()
    world.pass_time(700, first, second, step_s=5)
    finish(world)
    world.pass_time(2 * 3600, second, step_s=5)
    assert len(set(world.runs.ids)) == len(world.runs.ids)
    finish(world)
    before = len(world.runs.ids)
    world.pass_time(3700, second, step_s=5)
    assert len(world.runs.ids) > before


def kill_points(asked: dict[str, Any], world_of: Any) -> int:
    """Return how many changes a storage and its runs see in one story, so that each can be the last."""
    world, count = world_of(asked), itertools.count()
    world.storage.before = lambda words: next(count) and None
    story(world, world.scheduler())
    return next(count)


def new_world(asked: dict[str, Any]) -> World:
    world = World(START)
    world.schedule(**asked)
    return world


def story(world: World, scheduler: Scheduler) -> None:
    """Two minutes in which files arrive and runs end."""
    world.pass_time(61, scheduler, step_s=3)
    world.events["in"] = ["a"]
    world.pass_time(7, scheduler, step_s=3)
    finish(world)
    world.pass_time(62, scheduler, step_s=3)


STORIES: list[dict[str, Any]] = [
    {"every_s": 60.0, "overlap": "queue", "when": (TRIGGER,)},
    {"every_s": 30.0, "overlap": "cancel", "when": (TRIGGER,)},
    {"every_s": 60.0, "overlap": "skip", "when": (TRIGGER,), "catch_up": "none"},
]


@pytest.mark.parametrize("asked", STORIES, ids=["queue", "cancel", "skip"])
def test_a_scheduler_killed_at_any_write_loses_nothing_and_doubles_nothing(asked: dict[str, Any]) -> None:
    points = kill_points(asked, new_world)
    assert points > 30
    calm = new_world(asked)
    story(calm, calm.scheduler())
    for point in range(points):
        world, count = new_world(asked), itertools.count()

        def kill(words: str, count: Any = count, point: int = point) -> None:
            if next(count) == point:
                raise Killed(words)

        world.storage.before = kill
        with pytest.raises(Killed):
            story(world, world.scheduler())
        world.storage.before = lambda words: None
        if not world.events:
            world.events["in"] = ["a"]  # it arrives while no scheduler is at work
        successor = world.scheduler()
        for _ in range(30):
            world.pass_time(9, successor, step_s=3)
            finish(world)
        assert len(world.runs.ids) == len(set(world.runs.ids))
        causes = [name for _, _, firing in world.runs.begun for name in firing.cause.get("names", ())]
        skipped = [name for firing in world.state().over for name in firing.cause.get("names", ())]
        assert set(causes) | set(skipped) == {"a"}
        assert len(causes) <= 1
        over = world.state().over
        is_missed = any(firing.outcome == "missed" for firing in over)
        assert is_missed or "retrain-20260101T000100" in {*world.runs.ids, *(firing.run for firing in over)}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 70)), min_size=5, max_size=40), st.data())
def test_any_schedulers_in_any_turns_run_each_time_once(turns: list[tuple[int, int]], data: st.DataObject) -> None:
    world = World(START)
    world.schedule(every_s=60.0, overlap="queue", when=(TRIGGER,))
    schedulers = [world.scheduler(data.draw(st.sampled_from([-100.0, 0.0, 45.0]))) for _ in range(3)]
    arrived: list[str] = []
    for turn, (number, seconds) in enumerate(turns):
        if seconds % 3 == 0:
            arrived = world.events["in"] = [*arrived, f"file {turn}"]
        fate = data.draw(st.sampled_from(["lives"] * 4 + ["killed", "storage fails"]))
        countdown = itertools.count(-data.draw(st.integers(0, 6)))
        error: BaseException = Killed() if fate == "killed" else StoreError("gone")

        def fail(words: str, fate: str = fate, countdown: Any = countdown, error: BaseException = error) -> None:
            if fate != "lives" and next(countdown) == 0:
                raise error

        world.storage.before = fail
        try:
            world.pass_time(seconds, schedulers[number], step_s=seconds)
        except Killed:
            schedulers[number] = world.scheduler()
        except StoreError:
            pass
        if seconds % 2:
            finish(world)
    world.storage.before = lambda words: None
    last = world.scheduler()
    for _ in range(60):
        world.pass_time(10, last, step_s=5)
        finish(world)
    ids = world.runs.ids
    assert len(ids) == len(set(ids))
    names = [name for _, _, firing in world.runs.begun for name in firing.cause.get("names", ())]
    assert len(names) == len(set(names))
    assert set(names) <= set(arrived)


def test_a_user_is_faster_than_the_scheduler() -> None:
    world = World(START)
    world.schedule(every_s=60.0)
    scheduler = world.scheduler(bell_s=1000.0)
    world.pass_time(58, scheduler)
    world.book.change("retrain", lambda state: handle(state, PauseAsked(world.at)))  # type: ignore[arg-type]
    world.pass_time(600, scheduler)
    assert world.runs.ids == []


def test_a_new_schedule_is_noticed() -> None:
    world = World(START)
    scheduler = world.scheduler()
    world.pass_time(30, scheduler)
    world.schedule("later", every_s=10.0)
    world.pass_time(13, scheduler)
    assert world.runs.ids == ["later-20260101T000040"]


def test_a_trigger_that_cannot_be_looked_at_is_said_once_and_stops_nothing_else() -> None:
    world = World(START)
    world.events = {"in": [], "out": []}
    world.schedule("broken", when=(TRIGGER,))
    world.schedule("fine", when=(Trigger("arrived", "out"),), overlap="queue")
    scheduler = world.scheduler()
    world.pass_time(10, scheduler)
    world.failing = {"in"}
    world.pass_time(600, scheduler)
    world.events["out"].append("x")
    world.events["in"].append("y")
    world.pass_time(10, scheduler)
    assert world.runs.ids == ["fine-arrived-1"]
    assert [words for name, words in world.said if name == "broken"] == [
        "cannot look whether in arrived: in does not answer; tried again later"
    ]
    world.failing = set()
    world.pass_time(400, scheduler)
    assert "broken-arrived-1" in world.runs.ids


def test_a_schedule_that_cannot_be_read_is_said_once_and_stops_nothing_else() -> None:
    world = World(START)
    world.schedule("fine", every_s=60.0)
    world.storage.create(f"{FOLDER}/broken/000000001.json", b'{"name": 3}')
    scheduler = world.scheduler()
    world.pass_time(700, scheduler)
    assert len([words for name, words in world.said if name == "broken"]) == 1
    assert "fine-20260101T000100" in world.runs.ids


def test_a_run_that_cannot_be_started_is_over_and_says_why() -> None:
    world = World(START)
    world.schedule(every_s=60.0)
    world.runs.refuse = "there is no file retrain.py on this host"
    scheduler = world.scheduler()
    world.pass_time(65, scheduler)
    assert [(each.outcome, each.note) for each in world.state().over] == [("not started", world.runs.refuse)]


def test_only_so_many_runs_are_at_work_at_once() -> None:
    world = World(START)
    for n in range(10):
        world.schedule(f"s{n}", every_s=60.0)
    scheduler = world.scheduler(most_runs=3)
    world.pass_time(59, scheduler)
    for _ in range(6):
        world.pass_time(2, scheduler)
        assert len(world.runs.working) <= 3
        finish(world)
    assert len(world.runs.ids) == 10


def test_a_writer_that_slept_cannot_use_a_number_that_is_gone() -> None:
    world = World(START)
    state = world.schedule(every_s=60.0)
    for number in range(2, 10):
        assert world.book.write(Kept(number, state))
    assert not world.book.write(Kept(3, state))
    assert world.book.read("retrain") == Kept(9, state)
    assert sorted(world.book.numbers().items()) == [("retrain", 9)]


def test_a_run_that_cannot_be_looked_at_is_said_once_and_stops_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(START)
    world.schedule("broken", every_s=60.0)
    world.schedule("fine", every_s=60.0, overlap="queue")
    look = world.runs.look

    def failing(state: State, firing: Firing) -> RunSeen:
        if state.name == "broken":
            raise PermissionError("no entry")
        return look(state, firing)

    monkeypatch.setattr(world.runs, "look", failing)
    scheduler = world.scheduler()
    for _ in range(3):
        world.pass_time(61, scheduler)
        finish(world)
    assert world.runs.ids == [f"fine-20260101T000{n}00" for n in (1, 2, 3)]
    words = [words for name, words in world.said if name == "broken" and "cannot look" in words]
    assert words == ["cannot look how broken-20260101T000100 does: no entry; tried again later"]


@pytest.mark.parametrize("failing", ["beats/", "schedules/retrain"])
@pytest.mark.parametrize("is_written", [False, True])
def test_a_storage_that_fails_once_delays_a_firing_by_seconds(failing: str, is_written: bool) -> None:
    world, failures = World(START), itertools.count()
    world.schedule(every_s=60.0)
    scheduler = world.scheduler(bell_s=1000.0)
    world.pass_time(55, scheduler)

    def fail(words: str) -> None:
        is_after = words.startswith(("written", "created"))
        if failing in words and is_after == is_written and next(failures) == 0:
            raise StoreError("gone for a moment")

    world.storage.before = fail
    for _ in range(12):
        with contextlib.suppress(StoreError):
            world.pass_time(1, scheduler)
    assert next(failures) >= 1
    assert world.runs.ids == ["retrain-20260101T000100"]
