"""What the policy decides, in virtual time: clocks, triggers, overlap, catching up."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.registering.triggers import Seen, Trigger
from cargobike.pipelines.scheduling.plan import CatchUp, Overlap, Plan, times_of
from cargobike.pipelines.scheduling.policy.events import (
    AnyEvent,
    Asked,
    Cancel,
    Launch,
    Looked,
    PauseAsked,
    RemoveAsked,
    ResumeAsked,
    RunOver,
    Ticked,
)
from cargobike.pipelines.scheduling.policy.policy import begin, commands, handle, next_time
from cargobike.pipelines.scheduling.policy.state import State, key_of
from support.virtual_schedulers import TARGET

START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
DAY = 86400.0
TRIGGER = Trigger("changed", "teams")


def plan(
    *, every_s: float = 60.0, overlap: Overlap = "skip", catch_up: CatchUp = "last", when: tuple[Trigger, ...] = ()
) -> Plan:
    return Plan(target=TARGET, every_s=every_s, overlap=overlap, catch_up=catch_up, when=when, start=START)


def new(asked: Plan, marks: dict[str, str] | None = None) -> State:
    return begin("retrain", Asked(START, asked, marks or {}))


def told(state: State, *events: AnyEvent) -> State:
    for event in events:
        state = handle(state, event)
    return state


def over(state: State) -> list[tuple[str, str]]:
    return [(firing.run, firing.outcome) for firing in state.over]


def working(state: State) -> list[str]:
    return [firing.run for firing in state.active]


def test_the_clock_sets_it_off_once_for_each_time() -> None:
    state = told(new(plan()), Ticked(START + 59.9))
    assert commands(state) == []
    state = told(state, Ticked(START + 60), Ticked(START + 60.5), Ticked(START + 119))
    assert working(state) == ["retrain-20260101T000100"]
    assert [type(command) for command in commands(state)] == [Launch]
    assert state.active[0].cause == {"schedule": "retrain", "kind": "time", "due": "2026-01-01T00:01:00+00:00"}


def test_skip_leaves_out_what_comes_while_a_run_is_at_work() -> None:
    state = told(new(plan()), Ticked(START + 60), Ticked(START + 120))
    assert working(state) == ["retrain-20260101T000100"]
    assert over(state) == [("retrain-20260101T000200", "skipped")]
    assert state.over[0].note == "retrain-20260101T000100 was still at work"


def test_queue_runs_one_after_the_other() -> None:
    state = told(new(plan(overlap="queue")), *(Ticked(START + 60 * n) for n in (1, 2, 3)))
    seen = []
    while state.active:
        assert len(state.active) == 1
        seen.append(state.active[0].run[-4:])
        state = told(state, RunOver(START + 200, state.active[0].run, "completed"))
    assert seen == ["0100", "0200", "0300"]


def test_cancel_ends_what_is_at_work_and_only_the_newest_waits() -> None:
    state = told(new(plan(overlap="cancel")), *(Ticked(START + 60 * n) for n in (1, 2, 3)))
    assert Cancel("retrain-20260101T000100") in commands(state)
    assert [firing.run for firing in state.waiting] == ["retrain-20260101T000300"]
    assert over(state) == [("retrain-20260101T000200", "skipped")]
    state = told(state, RunOver(START + 181, "retrain-20260101T000100", "cancelled"))
    assert working(state) == ["retrain-20260101T000300"]


@pytest.mark.parametrize(
    ("catch_up", "late_s", "begun", "missed"),
    [("none", 30.0, 1, 3), ("none", 61.0, 0, 4), ("last", 61.0, 1, 3), ("all", 61.0, 4, 0)],
)
def test_what_was_missed_while_no_scheduler_was_at_work(
    catch_up: CatchUp, late_s: float, begun: int, missed: int
) -> None:
    state = told(new(plan(every_s=DAY, overlap="queue", catch_up=catch_up)), Ticked(START + 4 * DAY + late_s))
    assert len(state.active) + len(state.waiting) == begun
    assert sum(firing.count for firing in state.over if firing.outcome == "missed") == missed
    assert next_time(state) == START + 5 * DAY


def test_catching_up_with_all_has_a_limit() -> None:
    state = told(new(plan(every_s=1.0, overlap="queue", catch_up="all")), Ticked(START + 30 * DAY))
    assert len(state.active) + len(state.waiting) == 1000
    assert state.over[-1].note.startswith("1 or more until")
    assert state.waiting[-1].due == START + 30 * DAY


def test_a_clock_that_is_set_forward_and_back_neither_silences_nor_doubles() -> None:
    state = told(new(plan(every_s=3600.0)), Ticked(START + 3600))
    state = told(state, RunOver(START + 3700, state.active[0].run, "completed"))
    ahead = START + 5000 * 3600
    state = told(state, Ticked(ahead))
    run = state.active[0].run
    state = told(state, RunOver(ahead + 1, run, "completed"), Ticked(START + 7100), Ticked(START + 7200))
    assert working(state) == ["retrain-20260101T020000"]
    state = told(state, RunOver(START + 7300, state.active[0].run, "completed"))
    state = told(state, Ticked(ahead - 3600), RunOver(ahead, "retrain-20260728T070000", "completed"), Ticked(ahead + 5))
    assert run not in working(state)


def test_a_pause_lets_times_and_triggers_pass() -> None:
    key = key_of(TRIGGER)
    state = told(new(plan(when=(TRIGGER,)), {key: "1"}), PauseAsked(START + 1))
    state = told(state, Ticked(START + 600), Looked(START + 600, TRIGGER, "1", Seen("2", {"rows": 1})))
    assert commands(state) == []
    assert next_time(state) is None
    state = told(state, ResumeAsked(START + 610, {key: "2"}), Looked(START + 611, TRIGGER, "1", Seen("2", {"rows": 1})))
    assert commands(state) == []
    assert next_time(state) == START + 660


def test_a_trigger_sets_it_off_with_its_cause_and_once() -> None:
    state = new(plan(every_s=0.0, when=(TRIGGER,)), {key_of(TRIGGER): "3"})
    event = Looked(START + 5, TRIGGER, "3", Seen("5", {"commits": [4, 5]}))
    state = told(state, event, event)
    assert working(state) == ["retrain-changed-1"]
    assert state.active[0].cause["commits"] == [4, 5]
    assert (state.active[0].cause["kind"], state.active[0].cause["subject"]) == ("changed", "teams")


def test_a_first_look_only_marks() -> None:
    state = told(new(plan(every_s=0.0, when=(TRIGGER,))), Looked(START + 5, TRIGGER, "", Seen("5")))
    assert commands(state) == []
    assert state.marks == {key_of(TRIGGER): "5"}


def test_what_a_trigger_saw_waits_and_gathers_while_a_run_is_at_work() -> None:
    state = new(plan(every_s=0.0, overlap="queue", when=(TRIGGER,)), {key_of(TRIGGER): "1"})
    state = told(state, *(Looked(START + n, TRIGGER, str(n), Seen(str(n + 1), {"n": n})) for n in (1, 2, 3)))
    assert [firing.cause["n"] for firing in (*state.active, *state.waiting)] == [1, 2]
    assert state.marks == {key_of(TRIGGER): "3"}  # what came third is seen together with what follows, later


def test_a_changed_plan_counts_from_then_and_keeps_the_marks_of_its_triggers() -> None:
    other = Trigger("arrived", "in/*.parquet")
    state = new(plan(when=(TRIGGER,)), {key_of(TRIGGER): "3"})
    changed = Plan(target=TARGET, every_s=600.0, when=(TRIGGER, other), start=START + 90)
    state = told(state, Asked(START + 90, changed, {key_of(TRIGGER): "9", key_of(other): "a"}))
    assert state.marks == {key_of(TRIGGER): "3", key_of(other): "a"}
    assert next_time(state) == START + 690
    assert told(state, Asked(START + 200, changed, {})) is state


def test_a_deleted_schedule_leaves_its_run_alone_and_forgets_what_waits() -> None:
    state = told(new(plan(overlap="queue")), Ticked(START + 60), Ticked(START + 120), RemoveAsked(START + 130))
    assert working(state) == ["retrain-20260101T000100"]
    assert (state.waiting, over(state)) == ((), [("retrain-20260101T000200", "skipped")])
    state = told(state, RunOver(START + 140, state.active[0].run, "completed"), Ticked(START + 500))
    assert commands(state) == []


OUTCOMES = st.sampled_from(["tick", "back", "end", "look", "pause", "resume"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(OUTCOMES, st.floats(0, 400)), max_size=30),
    st.sampled_from(["skip", "queue", "cancel"]),
    st.sampled_from(["none", "last", "all"]),
)
def test_whatever_happens_no_time_is_begun_twice_and_one_run_is_at_work(
    happenings: list[tuple[str, float]], overlap: Overlap, catch_up: CatchUp
) -> None:
    key, at, mark = key_of(TRIGGER), START, 0
    state = new(plan(overlap=overlap, catch_up=catch_up, when=(TRIGGER,)), {key: "0"})
    begun: list[str] = []
    for what, seconds in happenings:
        if what == "back":
            at -= seconds
            event: AnyEvent = Ticked(at)
        else:
            at += seconds
            if what == "tick":
                event = Ticked(at)
            elif what == "end" and state.active:
                event = RunOver(at, state.active[0].run, "completed")
            elif what == "look":
                mark += 1
                event = Looked(at, TRIGGER, state.marks[key], Seen(str(mark), {"n": mark}))
            else:
                event = PauseAsked(at) if what == "pause" else ResumeAsked(at, {key: str(mark)})
        before, state = state, handle(state, event)
        assert len(state.active) <= 1
        assert handle(state, event) == state or isinstance(event, (ResumeAsked, RunOver, Looked))
        begun += [firing.run for firing in state.active if firing.run not in working(before)]
    assert len(begun) == len(set(begun))
    everything = [firing.run for firing in (*state.active, *state.waiting)]
    assert len(everything) == len(set(everything))
    assert times_of(state.plan) is not None
