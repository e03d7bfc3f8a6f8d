"""The conductor in virtual time: what is begun when, tried again, skipped, renewed; and a driver killed anywhere."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from cargobike.pipelines.driving import events
from cargobike.pipelines.driving.conductor import Conductor
from cargobike.pipelines.driving.events import Options, Outcome
from cargobike.pipelines.facts import AttemptEnded, RunStarted, RunState, StepAsked, StepState
from cargobike.pipelines.record import RunRecord, fold
from support.virtual_runs import FOLDER, Asking, VirtualRun


def states(record: RunRecord) -> list[StepState]:
    return [record.steps[number].state for number in sorted(record.steps)]


def begun(options: Options) -> Conductor:
    """Return the conductor of a run whose only step runs, and that runs one at a time."""
    record = fold([RunStarted(at=100.0, id="mine", pipeline="virtual")], FOLDER)
    conductor = Conductor(record, parallel=1)
    commands = conductor.handle(events.Asked(StepAsked(at=100.0, step=1, name="step"), options))
    assert commands[-1] == events.Begin(1, 1)
    return conductor


def test_steps_that_do_not_need_each_other_run_beside_each_other() -> None:
    run = VirtualRun([Asking(), Asking(), Asking(), Asking(after=(1, 2))], parallel=2)

    run.drive()

    assert [(at - 100, step) for at, step, _ in run.began] == [(0, 1), (0, 2), (1, 3), (1, 4)]
    assert run.most_at_once == 2


def test_pauses_between_attempts_double() -> None:
    run = VirtualRun([Asking(fails=3, options=Options(retries=3, backoff_s=2.0))])

    record = run.drive()

    assert [at - 100 for at, _, _ in run.began] == [0, 3, 8, 17]
    assert [attempt.attempt for attempt in record.steps[1].attempts] == [1, 2, 3]
    assert record.steps[1].state is StepState.COMPLETED


def test_an_attempt_that_takes_too_long_is_ended_and_counts() -> None:
    run = VirtualRun([Asking(seconds=60, options=Options(retries=1, backoff_s=1.0, timeout_s=5.0))])

    record = run.drive()

    assert run.ended == [(1, 1), (1, 2)]
    assert [at - 100 for at, _, _ in run.began] == [0, 6]
    assert record.steps[1].state is StepState.FAILED
    assert record.steps[1].error.startswith("It took longer than 5 s, its timeout.")


def test_what_needs_a_failed_step_is_skipped_and_the_rest_runs() -> None:
    run = VirtualRun([Asking(fails=1), Asking(after=(1,)), Asking(after=(2,)), Asking()])

    record = run.drive()

    assert states(record) == [StepState.FAILED, StepState.SKIPPED, StepState.SKIPPED, StepState.COMPLETED]
    assert record.steps[3].error.startswith("Step 1 (")  # not the one that was skipped
    assert record.steps[3].error.endswith(f"whose result it needs, failed: {record.steps[1].error}")


def test_a_failure_that_was_handled_is_not_tried_again_on_resume() -> None:
    run = VirtualRun([Asking(fails=1), Asking(after=(1,))])
    run.drive()

    record = run.drive()

    assert states(record) == [StepState.FAILED, StepState.SKIPPED]
    assert len(run.began) == 1


def test_lost_processes_cost_no_attempt_but_not_for_ever() -> None:
    conductor = begun(Options())
    for _ in range(3):
        conductor.handle(events.ProcessesLost(110.0, "killed"))
        assert conductor.running == {1}
    conductor.handle(events.ProcessesLost(120.0, "killed"))
    assert conductor.is_over
    assert conductor.record.steps[1].state is StepState.FAILED


def test_a_result_that_cannot_be_kept_is_not_tried_again() -> None:
    conductor = begun(Options(retries=5))

    outcome = Outcome(ok=False, error="a generator", final=True)
    commands = conductor.handle(events.Ended(105.0, 1, 1, outcome))

    assert not [one for one in commands if isinstance(one, events.Write) and isinstance(one.fact, AttemptEnded)]
    assert conductor.record.steps[1].state is StepState.FAILED


def test_a_stopped_run_ends_its_steps_and_begins_no_more() -> None:
    conductor = begun(Options())
    conductor.handle(events.Asked(StepAsked(at=101.0, step=2, name="step")))

    commands = conductor.handle(events.Stopped(103.0, RunState.CANCELLED))
    assert commands == [events.EndAttempt(1, 1)]
    assert conductor.handle(events.Ended(104.0, 1, 1, Outcome(ok=False, error="interrupted"))) == []
    assert conductor.is_over


def test_equal_inputs_and_code_are_found_in_the_cache() -> None:
    cached = Options(cache_s=math.inf)
    run = VirtualRun([Asking(options=cached), Asking(options=cached), Asking(after=(1,), options=cached)], parallel=1)

    record = run.drive()
    assert states(record) == [StepState.COMPLETED, StepState.COMPLETED, StepState.COMPLETED]

    again = VirtualRun([Asking(options=cached), Asking(options=cached, code="new"), Asking(after=(1,), options=cached)])
    again.cache = run.cache
    record = again.drive()
    assert states(record) == [StepState.CACHED, StepState.COMPLETED, StepState.CACHED]
    assert record.steps[1].source == "mine/2"


def test_a_changed_step_is_refused_or_run_anew_with_what_depends_on_it() -> None:
    asks = [Asking(), Asking(), Asking(after=(1,)), Asking(after=(2,))]
    run = VirtualRun(asks)
    run.drive()
    asks[0].code = "changed"

    run.drive()
    assert run.refused == [
        "Step 1 is not what it was when the run was recorded: the code of step has changed.",
    ]
    run.drive(accept_changes=True)

    assert run.effects == {1: 2, 2: 1, 3: 2, 4: 1}
    asks[1].name = "other"
    run.drive()
    assert "before it was step, now it is other" in run.refused[-1]


@st.composite
def pipelines(draw: st.DrawFn) -> list[Asking]:
    count = draw(st.integers(1, 6))
    asks = []
    for number in range(1, count + 1):
        after = draw(st.sets(st.integers(1, max(1, number - 1)), max_size=3)) if number > 1 else set()
        fails = draw(st.integers(0, 2))
        options = Options(retries=fails + 3, backoff_s=draw(st.sampled_from([0.0, 0.5])), cache_s=0.0)
        asks.append(Asking(tuple(sorted(after)), fails, draw(st.sampled_from([0.5, 1.0, 3.0])), options))
    return asks


@given(
    asks=pipelines(),
    parallel=st.integers(1, 3),
    kills=st.lists(
        st.tuples(st.integers(0, 30), st.dictionaries(st.integers(1, 6), st.booleans(), max_size=6)), max_size=5
    ),
)
def test_however_often_it_is_killed_each_step_has_its_effect_once(
    asks: list[Asking], parallel: int, kills: list[tuple[int, dict[int, bool]]]
) -> None:
    run = VirtualRun(asks, parallel=parallel)
    for kill_at, outlive in kills:
        run.drive(kill_at=kill_at, outlive=outlive)
    record = run.drive()

    assert states(record) == [StepState.COMPLETED] * len(asks)
    assert run.effects == dict.fromkeys(range(1, len(asks) + 1), 1)
    results = [record.steps[number].result for number in sorted(record.steps)]
    assert [result.data for result in results if result] == list(range(1, len(asks) + 1))
    assert all(len(run.ends_of(number)) == 1 for number in record.steps)
