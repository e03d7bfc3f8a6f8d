"""What the scheduler does in situations that once went wrong, or that users were promised something about."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.facts import AttemptLost, ExperimentResumed, OptimizerIdled
from cargobike.core.records import IDLE, Decision, Suggestion
from cargobike.core.running.ending import Ending, EndKind
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.plan import Plan
from support.scheduler_world import Story


def test_workers_get_trials_as_they_come_and_one_suggestion_is_kept_ahead() -> None:
    story = Story(workers=2, num_trials=4)
    story.suggest_next()
    assert not story.questions, "one ahead is enough while nobody is free"
    story.join_all()
    assert story.job("w0") == (0, 1)
    story.suggest_next()
    story.suggest_next()
    assert story.job("w1") == (1, 1)
    assert story.states == ["running", "running", "pending"]
    story.end_on("w1")
    assert story.job("w1") == (2, 1), "the trial that was ready starts without a question"


def test_an_optimizer_that_fails_ends_the_experiment_although_it_never_answers() -> None:
    story = Story(workers=1, num_trials=3)
    story.happen(ev.StopRequested(at=1.0, reason="the optimizer failed:\nno", state="failed"))
    assert story.finish == ev.Finish("failed", "the optimizer failed:\nno")


def test_a_stop_does_not_wait_for_a_slow_suggestion_and_ignores_it_when_it_comes() -> None:
    story = Story(workers=1, num_trials=3)
    story.suggest_next()
    story.join_all()
    question = story.questions.popleft()
    assert isinstance(question, ev.Ask)
    story.happen(ev.StopRequested(at=1.0, reason="interrupted by the user"))
    story.end_on("w0", "stopped")
    assert story.finish == ev.Finish("interrupted", "interrupted by the user")
    story.happen(story.suggest(question, Suggestion(params={"x": 2})))
    assert story.states == ["stopped"]


def test_a_stop_answers_whoever_waits_and_leaves_pending_what_was_never_started() -> None:
    story = Story(workers=1, num_trials=3, every_report_is_milestone=True)
    story.suggest_next()
    story.join_all()
    story.suggest_next()
    story.report_from("w0")
    story.happen(ev.StopRequested(at=1.0, reason="interrupted by the user"))
    job = story.workers["w0"].job
    assert job is not None
    assert (job.told_to, job.halted) == (Decision.STOP, True)
    story.end_on("w0", "stopped")
    assert story.states == ["stopped", "pending"]
    assert story.trials[0].error == "interrupted by the user"


def test_a_trial_that_waits_for_its_next_attempt_is_stopped_with_the_experiment() -> None:
    story = Story(workers=1, num_trials=1)
    story.suggest_next()
    story.join_all()
    story.lose("w0")
    story.happen(ev.StopRequested(at=1.0, reason="interrupted by the user"))
    assert story.states == ["stopped"]


def test_a_trial_whose_worker_is_lost_runs_again_before_others() -> None:
    story = Story(workers=1, num_trials=2)
    story.suggest_next()
    story.join_all()
    story.suggest_next()
    story.lose("w0")
    story.join_all()
    assert story.job("w1") == (0, 2)


def test_a_trial_fails_after_too_many_lost_attempts() -> None:
    story = Story(workers=1, num_trials=1, max_attempts=2)
    story.suggest_next()
    story.join_all()
    story.lose("w0")
    story.join_all()
    story.lose("w1")
    assert story.states == ["failed"]
    assert story.trials[0].error == "gave up after 2 lost attempts; the last one: worker w1 was lost: was killed"


def test_pauses_do_not_count_as_lost_attempts() -> None:
    story = Story(workers=1, num_trials=1, max_attempts=2)
    story.suggest_next(Suggestion(milestones=(1, 2, 3, 4)))
    story.join_all()
    for step in range(3):
        job = story.workers["w0"].job
        assert job is not None
        job.step = step
        story.report_from("w0")
        story.decide_next(Decision.PAUSE)
        story.end_on("w0", "paused")
        story.suggest_next(Suggestion(resume=0))
    story.lose("w0")
    story.join_all()
    assert story.job("w1") == (0, 5)


def test_a_pause_forgives_the_attempts_that_were_lost_before() -> None:
    story = Story(workers=1, num_trials=1, max_attempts=2)
    story.suggest_next(Suggestion(milestones=(1,)))
    story.join_all()
    story.lose("w0")
    story.join_all()
    story.report_from("w1")
    story.decide_next(Decision.PAUSE)
    story.end_on("w1", "paused")
    story.suggest_next(Suggestion(resume=0))
    story.lose("w1")
    story.join_all()
    assert story.job("w2") == (0, 4), "the second loss is the first in its row"
    story.lose("w2")
    assert story.states == ["failed"]


def test_losing_a_whole_machine_is_not_the_end() -> None:
    story = Story(workers=20, num_trials=40, max_worker_losses=6)
    story.join_all()
    for name in list(story.workers):
        story.lose(name)
    assert not story.scheduler.is_ending
    assert len(story.workers) == 20


def test_workers_that_die_at_their_work_now_and_then_are_not_the_end() -> None:
    story = Story(workers=2, num_trials=2, max_worker_losses=1, max_attempts=100)
    story.suggest_next()
    for _ in range(50):
        story.join_all()
        busy = next(name for name in story.workers if story.job(name))
        story.lose(busy)
    assert not story.scheduler.is_ending


def test_workers_that_never_come_end_the_experiment() -> None:
    story = Story(workers=20, num_trials=40, max_worker_losses=6)
    for name in list(story.workers)[:7]:
        story.lose(name)
    assert story.finish == ev.Finish("failed", "7 workers were lost in a row, the last one: was killed")


HOPELESS = Ending(EndKind.HOPELESS, "no Cargobike there")


def test_a_reason_that_holds_for_all_workers_ends_the_experiment_at_once() -> None:
    story = Story(workers=2, num_trials=4, max_worker_losses=6)
    story.lose(next(iter(story.workers)), HOPELESS)
    assert story.finish == ev.Finish("failed", "no worker can be started: no Cargobike there")


def test_where_workers_have_run_already_one_that_cannot_start_is_not_the_end() -> None:
    story = Story(workers=2, num_trials=4, max_worker_losses=6)
    first, second = story.workers.values()
    story.happen(story.arrive(first))
    story.lose(second.name, HOPELESS)
    assert not story.scheduler.is_ending


# -- gangs -----------------------------------------------------------------------------------------------------------


def gang_story(gang: int, **plan: Any) -> Story:
    story = Story(workers=gang, gang=gang, num_trials=1, **plan)
    story.suggest_next(Suggestion(milestones=(1,)))
    story.join_all()
    assert story.job("w0") == (0, 1)
    return story


def test_a_gang_larger_than_all_workers_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"gang=3 .* workers=2"):
        Plan(workers=2, gang=3)


def test_a_gang_waits_until_it_is_complete() -> None:
    story = Story(workers=3, gang=3, num_trials=1)
    story.suggest_next()
    for name in ("w0", "w1"):
        story.happen(story.arrive(story.workers[name]))
    assert story.states == ["pending"]
    story.happen(story.arrive(story.workers["w2"]))
    assert story.states == ["running"]


@pytest.mark.parametrize("consequence", ["stopped", "failed"])
def test_a_gang_that_loses_a_worker_is_tried_again_however_the_others_end(consequence: ev.Outcome) -> None:
    story = gang_story(3)
    story.lose("w1")
    assert all(story.workers[name].job.halted for name in ("w0", "w2"))  # type: ignore[union-attr]
    story.end_on("w0", consequence)
    story.end_on("w2", consequence)
    assert isinstance(story.facts[-1], AttemptLost)
    story.join_all()
    assert story.job("w0") == (0, 2)


def test_a_failure_of_one_rank_ends_the_others() -> None:
    story = gang_story(2)
    story.end_on("w1", "failed")
    story.end_on("w0", "stopped")
    assert story.states == ["failed"]
    assert story.trials[0].error == "rank 1 (no step reported): ValueError"


def test_workers_that_are_done_before_their_gang_are_not_replaced() -> None:
    story = Story(workers=3, gang=3, num_trials=1)
    story.suggest_next()
    story.join_all()
    story.end_on("w2")
    assert sorted(story.workers) == ["w0", "w1"]
    story.end_on("w0")
    story.end_on("w1")
    assert story.states == ["completed"]


def test_rank_0_is_judged_for_all() -> None:
    story = gang_story(3)
    story.report_from("w1")
    assert not story.questions
    story.report_from("w0")
    story.decide_next(Decision.CONTINUE)
    story.report_from("w2")
    assert not story.questions
    assert all(worker.job.waits_at is None for worker in story.workers.values() if worker.job)


def test_when_one_rank_stops_the_others_are_asked_to() -> None:
    story = gang_story(3)
    story.report_from("w0")
    story.decide_next(Decision.STOP)
    story.end_on("w0", "stopped")
    assert all(story.workers[name].job.halted for name in ("w1", "w2"))  # type: ignore[union-attr]
    story.end_on("w1", "stopped")
    story.end_on("w2", "stopped")
    assert story.states == ["stopped"]


def test_a_rank_that_waits_goes_on_when_rank_0_is_done() -> None:
    story = gang_story(2)
    story.report_from("w1")
    story.end_on("w0")
    assert story.workers["w1"].job is not None
    assert story.workers["w1"].job.waits_at is None


# -- milestones ------------------------------------------------------------------------------------------------------


def judged_story(decision: Decision, **plan: Any) -> Story:
    story = Story(workers=1, num_trials=2, every_report_is_milestone=True, **plan)
    story.suggest_next()
    story.join_all()
    story.report_from("w0")
    story.questions.rotate(1)  # the question for the next suggestion is still open
    story.decide_next(decision)
    return story


def test_a_train_function_that_ignores_its_verdict_is_made_to_end() -> None:
    story = judged_story(Decision.STOP)
    story.report_from("w0")
    job = story.workers["w0"].job
    assert job is not None
    assert job.halted
    story.end_on("w0", "stopped")
    assert story.states[0] == "stopped"


def test_a_stop_of_the_experiment_reaches_a_train_function_that_ignored_its_verdict() -> None:
    story = judged_story(Decision.STOP)
    story.happen(ev.StopRequested(at=1.0, reason="interrupted by the user"))
    assert story.workers["w0"].job is not None
    assert story.workers["w0"].job.halted


def test_a_timeout_reaches_a_train_function_that_ignored_its_verdict() -> None:
    story = judged_story(Decision.PAUSE, trial_timeout_s=10.0)
    assert story.scheduler.next_deadline == 10.0
    story.happen(ev.Tick(at=10.0))
    assert story.workers["w0"].job is not None
    assert story.workers["w0"].job.halted
    assert story.scheduler.next_deadline is None


def test_a_trial_that_takes_too_long_fails() -> None:
    story = Story(workers=1, num_trials=1, trial_timeout_s=10.0)
    story.suggest_next()
    story.at = 5.0
    story.join_all()
    assert story.scheduler.next_deadline == 15.0, "it counts from the start, not from the suggestion"
    story.at = 15.0
    story.happen(ev.Tick(at=15.0))
    story.end_on("w0", "stopped")
    assert story.states == ["failed"]
    assert story.trials[0].error == "ran longer than trial_timeout_s=10 and was ended"


def test_a_time_budget_ends_the_experiment_as_completed() -> None:
    story = Story(workers=1, num_trials=5, timeout_s=60.0)
    story.suggest_next()
    story.join_all()
    story.at = 60.0
    story.happen(ev.Tick(at=60.0))
    story.end_on("w0", "stopped")
    assert story.finish == ev.Finish("completed", "time budget of 60 s used up")


def test_a_pause_that_fails_is_a_failure() -> None:
    story = judged_story(Decision.PAUSE)
    story.end_on("w0", "failed")
    assert story.states[0] == "failed"


def test_a_trial_that_pauses_by_itself_is_stopped() -> None:
    story = Story(workers=1, num_trials=1)
    story.suggest_next()
    story.join_all()
    story.end_on("w0", "paused")
    assert story.states == ["stopped"]


def test_a_milestone_is_decided_about_once() -> None:
    story = Story(workers=1, num_trials=1)
    story.suggest_next(Suggestion(milestones=(1, 3)))
    story.join_all()
    story.report_from("w0")
    story.decide_next(Decision.CONTINUE)
    story.lose("w0")
    story.join_all()
    assert story.scheduler.milestones(0) == (3,)


# -- the conversation ------------------------------------------------------------------------------------------------


def test_an_optimizer_that_idles_is_asked_again_if_a_trial_ended_meanwhile() -> None:
    story = Story(workers=1)
    story.suggest_next()
    story.join_all()
    story.end_on("w0")
    question = story.questions[0]
    assert question == ev.Ask((), None)
    story.suggest_next(IDLE)
    assert story.finish is None
    assert story.questions[0] == ev.Ask((0,), 0)


def test_an_optimizer_that_idles_with_nothing_running_ends_the_search() -> None:
    story = Story(workers=1)
    story.suggest_next(IDLE)
    assert isinstance(story.facts[-2], OptimizerIdled)
    assert story.finish == ev.Finish("completed", "")


def test_more_suggestions_than_asked_for_are_refused() -> None:
    story = Story(workers=2, num_trials=1)
    story.suggest_next(Suggestion(milestones=(1,)))
    story.join_all()
    story.report_from("w0")
    story.decide_next(Decision.PAUSE)
    story.end_on("w0", "paused")
    story.suggest_next()
    assert story.states == ["stopped"]
    assert story.trials[0].error == "was not resumed before the end"
    assert story.finish == ev.Finish("completed", "")


@pytest.mark.parametrize(("number", "state"), [(0, "is running"), (7, "does not exist"), (-1, "does not exist")])
def test_resuming_what_is_not_paused_ends_the_experiment_with_a_reason(number: int, state: str) -> None:
    story = Story(workers=2)
    story.suggest_next()
    story.join_all()
    story.suggest_next(Suggestion(resume=number))
    story.end_on("w0", "stopped")
    assert story.finish == ev.Finish(
        "failed",
        f"the optimizer wants to resume trial {number}, which {state}; "
        "only a trial that it was shown as paused can be resumed",
    )


def test_a_pause_can_be_resumed_once() -> None:
    story = Story(workers=1, num_trials=2)
    story.suggest_next(Suggestion(milestones=(1, 2)))
    story.join_all()
    story.report_from("w0")
    story.questions.rotate(1)  # the question for the next suggestion is still open
    story.decide_next(Decision.PAUSE)
    story.end_on("w0", "paused")
    story.suggest_next(IDLE)
    story.suggest_next(Suggestion(resume=0))
    assert story.states == ["running"]
    story.suggest_next(Suggestion(resume=0))
    story.end_on("w0", "stopped")
    assert story.scheduler.record.reason.startswith("the optimizer wants to resume trial 0, which is running")


def test_too_many_failures_end_the_experiment() -> None:
    story = Story(workers=1, max_failures=1, fail_fast=0)
    story.suggest_next()
    story.join_all()
    for _ in range(2):
        story.suggest_next()
        story.end_on("w0", "failed")
    assert story.scheduler.record.reason == "2 trials failed, max_failures=1 allowed:\nValueError"


def test_first_trials_that_all_fail_alike_end_the_experiment() -> None:
    story = Story(workers=1)
    story.suggest_next()
    story.join_all()
    for _ in range(3):
        story.suggest_next()
        story.end_on("w0", "failed")
    assert story.scheduler.record.reason == "the first 3 trials all failed alike:\nValueError"


def test_first_trials_that_fail_differently_do_not() -> None:
    story = Story(workers=1)
    story.suggest_next()
    story.join_all()
    for number in range(6):
        story.suggest_next()
        story.happen(story.end(story.workers["w0"], "failed", choice=number))
    assert not story.scheduler.is_ending


def test_idle_workers_are_sent_home_when_nothing_more_will_come() -> None:
    story = Story(workers=2, num_trials=2)
    story.suggest_next()
    story.join_all()
    story.suggest_next()
    story.end_on("w0")
    assert story.released == {"w0"}
    assert story.finish is None


def repeated(number: int, made_in: int, attempt: int) -> ev.PointsReported:
    return ev.PointsReported(
        at=0.0,
        worker="w1",
        trial=0,
        attempt=attempt,
        step=5,  # two reports of one step are two reports
        metrics={"accuracy": number + 0.1 * made_in},
        number=number,
        made_in=made_in if made_in < attempt else 0,
    )


def story_of_two_attempts(arrived: int) -> Story:
    """Return the story of a trial of which so many reports of the first attempt arrived, and a second one runs."""
    story = Story(workers=1, num_trials=1)
    story.suggest_next()
    story.join_all()
    for number in range(1, arrived + 1):
        first = msgspec.structs.replace(repeated(number, 1, 1), worker="w0")
        story.happen(first)
    story.lose("w0")
    story.join_all()
    assert story.job("w1") == (0, 2)
    return story


def test_a_report_that_is_repeated_counts_only_if_it_was_lost() -> None:
    story = story_of_two_attempts(arrived=2)
    for number in (1, 2, 3):
        story.happen(repeated(number, made_in=1, attempt=2))
    assert list(story.scheduler.record.trials[0].curve.values) == [1.1, 2.1, 3.1]


def test_what_is_trained_anew_takes_the_place_of_what_was_reported_before() -> None:
    story = story_of_two_attempts(arrived=4)
    for number in (2, 3):
        story.happen(repeated(number, made_in=2, attempt=2))
    trial = story.scheduler.record.trials[0]
    assert list(trial.curve.values) == [1.1, 2.2, 3.2]
    assert trial.reports == 3


def test_a_repeated_report_takes_the_place_of_one_by_an_attempt_that_was_before_its_own() -> None:
    story = story_of_two_attempts(arrived=3)
    story.lose("w1")
    story.join_all()
    for number in (2, 3):  # of the second attempt, of whose reports none has arrived
        event = msgspec.structs.replace(repeated(number, made_in=2, attempt=3), worker="w2")
        story.happen(event)
    assert list(story.scheduler.record.trials[0].curve.values) == [1.1, 2.2, 3.2]


def test_reports_of_one_attempt_follow_each_other_whatever_their_numbers() -> None:
    """Threads and forked processes that report at the same time may take the same number."""
    story = story_of_two_attempts(arrived=3)
    for number in (3, 3, 4, 3):
        story.happen(repeated(number, made_in=2, attempt=2))
    assert list(story.scheduler.record.trials[0].curve.values) == [1.1, 2.1, 3.2, 3.2, 4.2, 3.2]


def test_what_an_interruption_cut_off_goes_on_and_what_the_optimizer_stopped_stays_stopped() -> None:
    story = Story(workers=3, num_trials=3, every_report_is_milestone=True)
    story.suggest_next()
    story.join_all()
    story.suggest_next()
    story.suggest_next()
    story.report_from("w0", "w1")
    story.decide_next(Decision.STOP)
    story.decide_next(Decision.PAUSE)
    story.end_on("w0", "stopped")
    story.end_on("w1", "paused")
    story.happen(ev.StopRequested(at=story.at, reason="interrupted by the user"))
    story.end_on("w2", "stopped")
    assert story.finish == ev.Finish("interrupted", "interrupted by the user")
    trials = story.scheduler.record.trials
    assert [(one.state.value, one.is_interrupted) for one in trials.values()][:3] == [
        ("stopped", False),
        ("paused", False),
        ("stopped", True),
    ]
    story.scheduler.record.apply(ExperimentResumed(at=story.at))
    assert [one.state.value for one in trials.values()][:3] == ["stopped", "paused", "pending"]


def test_a_step_that_was_saved_before_it_was_reported_is_not_reported_again() -> None:
    story = story_of_two_attempts(arrived=2)
    event = msgspec.structs.replace(repeated(2, made_in=2, attempt=2), step=6)
    story.happen(event)  # its checkpoint was saved before the second report, but it goes on after that step
    assert list(story.scheduler.record.trials[0].curve.values) == [1.1, 2.1, 2.2]


def test_reports_are_confirmed_when_their_worker_asks() -> None:
    story = story_of_two_attempts(arrived=1)
    commands = story.scheduler.handle(msgspec.structs.replace(repeated(2, made_in=2, attempt=2), asks=True))
    assert [type(command) for command in commands] == [ev.Record, ev.Confirm], "the fact comes first"
    assert commands[1] == ev.Confirm("w1", 0, 2, 2)
