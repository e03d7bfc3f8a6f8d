"""Running attempts: reports, decisions, stalls, deadlines and ends; without a scheduler around it."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike.core import facts
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Decision
from cargobike.core.running.ending import Ending, EndKind
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.attempt import Attempt, LiveTrial
from cargobike.experiments.scheduling.running import Running
from support.scheduler_world import HEADER

GONE = Ending(EndKind.KILLED, "was killed")


class Setting:
    """One trial that runs on a gang, and what came of it since the last look."""

    def __init__(self, *workers: str, servers: int = 0, **limits: Any) -> None:
        self.out = ev.Outbox(ExperimentRecord(HEADER))
        self.out.fact(facts.TrialSuggested(at=0.0, trial=0, params={"x": 1}))
        self.out.fact(facts.TrialSuggested(at=0.0, trial=1, params={"x": 2}))
        limits.setdefault("trial_timeout_s", None)
        self.running = Running(self.out, self.out.record.trials, **limits)
        self.servers = servers
        self.attempt = self.start(1, workers or ("w0",))
        self.out.take()

    def start(self, number: int, workers: tuple[str, ...] = ("w0",), trial: int = 0, at: float = 0.0) -> Attempt:
        attempt = Attempt(trial, number, workers, servers=self.servers)
        self.running.start(attempt, at)
        return attempt

    def deadline(self) -> float | None:
        return self.running.next_deadline

    def commands(self, kind: type[Any] | None = None) -> list[Any]:
        taken = self.out.take()
        return [command for command in taken if kind is None or isinstance(command, kind)]

    def report(self, worker: str = "w0", step: int = 1, at: float = 1.0, **more: Any) -> list[Any]:
        more = {"attempt": 1, "trial": 0, "metrics": {"loss": 0.5}, "waits": False, **more}
        self.running.points_reported(ev.PointsReported(at=at, worker=worker, step=step, **more))
        return self.commands()

    def decide(self, decision: Decision, step: int = 1, attempt: int = 1) -> bool:
        return self.running.decision_made(
            ev.DecisionMade(at=2.0, trial=0, attempt=attempt, step=step, decision=decision, by="rule", told=4)
        )

    def end(self, worker: str, outcome: ev.Outcome = "completed", *, is_symptom: bool = False, attempt: int = 1) -> Any:
        return self.running.ended(
            ev.AttemptEnded(
                at=3.0,
                worker=worker,
                trial=0,
                attempt=attempt,
                outcome=outcome,
                value=None,
                metrics={},
                error=None,
                is_symptom=is_symptom,
            )
        )

    def quiet(self, worker: str, at: float, idle_s: float, attempt: int = 1) -> list[Any]:
        self.running.rank_quiet(ev.RankQuiet(at=at, worker=worker, trial=0, attempt=attempt, idle_s=idle_s))
        return self.commands(ev.StopAttempt)


def stops_of(setting: Setting) -> list[tuple[str, bool, bool, bool]]:
    return [(s.worker, s.kill, s.stack, s.is_server) for s in setting.commands(ev.StopAttempt)]


# -- reports ---------------------------------------------------------------------------------------------------------


def test_a_start_is_recorded_before_it_is_commanded() -> None:
    setting = Setting()
    attempt = Attempt(1, 3, ("w1", "s0"), hosts=("a", "b"), servers=1)
    setting.running.start(attempt, 7.0)
    record, run = setting.commands()
    assert record.fact == facts.AttemptStarted(at=7.0, trial=1, attempt=3, workers=("w1", "s0"))
    assert run == ev.Run(1, 3, ("w1", "s0"), ("a", "b"), 1)
    assert attempt.active_at == 7.0
    assert len(setting.running) == 2
    assert list(setting.running) == [setting.attempt, attempt]


def test_reports_of_rank_0_are_recorded_and_of_others_only_noted() -> None:
    setting = Setting("w0", "w1")
    (record,) = setting.report("w0", 4, at=5.0)
    reported = record.fact
    assert (reported.at, reported.trial, reported.step, reported.attempt, reported.number) == (5.0, 0, 4, 1, 1)
    assert reported.metrics == {"loss": 0.5}
    assert setting.report("w1", 3, at=6.0) == []
    assert setting.attempt.steps == {"w0": 4, "w1": 3}
    assert setting.attempt.active_at == 6.0
    assert setting.report("w1", asks=True, number=1) == []


@pytest.mark.parametrize("wrong", [{"worker": "w9"}, {"attempt": 2}, {"attempt": 0}, {"trial": 1}])
def test_reports_of_others_change_nothing(wrong: dict[str, Any]) -> None:
    setting = Setting("w0", "w1")
    assert setting.report(**{"worker": "w0", "at": 9.0, **wrong}) == []
    assert setting.attempt.steps == {}
    assert setting.attempt.active_at == 0.0


def test_a_report_that_asks_is_confirmed_after_it_is_recorded() -> None:
    setting = Setting()
    record, confirm = setting.report(asks=True, number=1)
    assert isinstance(record, ev.Record)
    assert confirm == ev.Confirm("w0", 0, 1, 1)


def numbers_of(setting: Setting, *reports: tuple[int, int, int], attempt: int) -> list[int]:
    """Report steps with their numbers and the attempt that made them; return the numbers recorded."""
    recorded = []
    for step, number, made_in in reports:
        commands = setting.report(step=step, number=number, made_in=made_in, attempt=attempt)
        recorded += [command.fact.number for command in commands]
    return recorded


def test_an_attempt_that_goes_back_makes_its_reports_again() -> None:
    setting = Setting()
    assert numbers_of(setting, (0, 1, 0), (1, 2, 0), (2, 3, 0), attempt=1) == [1, 2, 3]
    setting.end("w0", "lost")
    setting.start(2)
    setting.commands()
    assert numbers_of(setting, (1, 2, 0), (2, 9, 0), (3, 9, 0), attempt=2) == [2, 3, 4], "the first one says where"


def test_a_step_that_was_saved_before_its_report_is_not_made_again() -> None:
    setting = Setting()
    numbers_of(setting, (0, 1, 0), (1, 2, 0), attempt=1)
    setting.end("w0", "lost")
    setting.start(2)
    setting.commands()
    assert numbers_of(setting, (2, 2, 0), attempt=2) == [3]


@pytest.mark.parametrize("made_in", [-1, 1, 2])
def test_a_report_of_an_earlier_attempt_that_has_no_number_harms_nothing(made_in: int) -> None:
    setting = Setting()
    assert numbers_of(setting, (3, 0, made_in), (4, 0, made_in), attempt=1) == [1, 2]
    assert numbers_of(setting, (4, 0, -1), attempt=1) == [], "it has arrived before"


def test_a_report_of_an_earlier_attempt_counts_once() -> None:
    setting = Setting()
    numbers_of(setting, (0, 1, 0), (1, 2, 0), attempt=1)
    setting.end("w0", "lost")
    setting.start(2)
    setting.commands()
    assert numbers_of(setting, (1, 2, 1), attempt=2) == [], "it has arrived"
    assert numbers_of(setting, (2, 3, 1), attempt=2) == [3], "it has not"


# -- decisions -------------------------------------------------------------------------------------------------------


def test_rank_0_is_judged_and_the_others_pass_when_it_has_passed() -> None:
    setting = Setting("w0", "w1")
    setting.attempt.horizon = 6
    assert setting.report("w1", 1, waits=True) == []
    _, judge = setting.report("w0", 1, waits=True)
    assert judge == ev.Judge(0, 1, 1, 6)
    assert len(setting.report("w0", 1, waits=True)) == 1, "it is not judged twice"
    assert setting.decide(Decision.CONTINUE)
    record, *answers = setting.commands()
    assert record.fact == facts.Judged(at=2.0, trial=0, step=1, decision="continue", by="rule", told=4)
    assert sorted((a.worker, a.trial, a.attempt, a.step, a.decision) for a in answers) == [
        (worker, 0, 1, 1, Decision.CONTINUE) for worker in ("w0", "w1")
    ]
    assert setting.attempt.waiting == {}
    (passes,) = setting.report("w1", 1, waits=True)
    assert isinstance(passes, ev.Answer)
    assert setting.report("w1", 2, waits=True) == [], "rank 0 has not got there"


@pytest.mark.parametrize(
    ("decision", "state", "is_judged"), [(Decision.STOP, "stopped", True), (Decision.PAUSE, "paused", False)]
)
def test_a_verdict_reaches_all_that_wait_and_all_that_come_later(
    decision: Decision, state: str, is_judged: bool
) -> None:
    setting = Setting("w0", "w1", "w2")
    setting.report("w0", 1, waits=True)
    setting.report("w1", 5, waits=True)
    assert setting.decide(decision)
    assert setting.attempt.verdict == (state, "rule")
    assert setting.attempt.was_judged is is_judged
    assert {(a.worker, a.decision) for a in setting.commands(ev.Answer)} == {("w0", decision), ("w1", decision)}
    (late,) = setting.report("w2", 1, waits=True)
    assert (late.worker, late.decision) == ("w2", decision)
    assert setting.attempt.force == 0
    setting.report("w0", 2)
    assert setting.attempt.force == 1, "it was told, and goes on nevertheless"


@pytest.mark.parametrize(("step", "attempt"), [(2, 1), (1, 2), (1, 0)])
def test_decisions_that_no_one_waits_for_are_dropped(step: int, attempt: int) -> None:
    setting = Setting()
    setting.report(waits=True)
    assert not setting.decide(Decision.STOP, step, attempt)
    assert setting.commands() == []
    assert setting.attempt.verdict is None


def test_checkpoints_are_recorded_while_their_rank_is_there() -> None:
    setting = Setting("w0", "w1")

    def save(worker: str, attempt: int = 1, step: int = 4) -> list[Any]:
        event = ev.CheckpointWritten(at=8.0, worker=worker, trial=0, attempt=attempt, step=step, path="x", size_bytes=5)
        setting.running.checkpoint_written(event)
        return setting.commands()

    (record,) = save("w1")
    saved = record.fact
    assert (saved.at, saved.trial, saved.step, saved.path, saved.attempt, saved.size_bytes) == (8.0, 0, 4, "x", 1, 5)
    assert (setting.attempt.active_at, setting.attempt.saved_step) == (8.0, 4)
    setting.end("w1")
    setting.commands()
    assert save("w1", step=9) == save("w0", attempt=2, step=9) == []
    assert setting.attempt.saved_step == 4


# -- stalls ----------------------------------------------------------------------------------------------------------


def test_a_rank_that_stands_still_ends_its_gang_and_shows_its_stack() -> None:
    setting = Setting("w0", "w1", "s0", servers=1, stall_timeout_s=10.0)
    assert setting.quiet("w0", 9.9, 99.0) == [], "others were heard of"
    assert setting.quiet("w0", 10.0, 9.9) == [], "it has not stood for so long"
    setting.running.rank_quiet(ev.RankQuiet(at=10.0, worker="w0", trial=0, attempt=1, idle_s=10.0))
    assert stops_of(setting) == [("w0", False, True, False), ("w1", False, True, False), ("s0", False, True, True)]
    assert setting.attempt.stall == "no rank of the gang has reported anything for stall_timeout_s=10 s"
    assert setting.quiet("w1", 90.0, 90.0) == [], "once is enough"


@pytest.mark.parametrize(("worker", "attempt"), [("s0", 1), ("w9", 1), ("w0", 2)])
def test_servers_and_strangers_may_be_quiet(worker: str, attempt: int) -> None:
    setting = Setting("w0", "w1", "s0", servers=1, stall_timeout_s=10.0)
    assert setting.quiet(worker, 99.0, 99.0, attempt) == []
    assert setting.attempt.stall is None


def test_one_that_has_ended_may_be_quiet() -> None:
    setting = Setting("w0", "w1", stall_timeout_s=10.0)
    setting.end("w1")
    assert setting.quiet("w1", 99.0, 99.0) == []


def test_no_one_stalls_alone_or_without_a_limit() -> None:
    assert Setting(stall_timeout_s=10.0).quiet("w0", 99.0, 99.0) == []
    assert Setting("w0", "w1").quiet("w0", 99.0, 99.0) == []


def test_signs_of_life_count_while_their_rank_is_there() -> None:
    setting = Setting("w0", "w1")
    setting.running.rank_active(ev.RankActive(at=5.0, worker="w1", trial=0))
    assert setting.attempt.active_at == 5.0
    setting.end("w1")
    setting.running.rank_active(ev.RankActive(at=6.0, worker="w1", trial=0))
    setting.running.rank_active(ev.RankActive(at=6.0, worker="w0", trial=5))
    assert setting.attempt.active_at == 5.0


# -- ends ------------------------------------------------------------------------------------------------------------


def test_a_rank_that_returns_lets_the_others_go_on() -> None:
    setting = Setting("w0", "w1")
    assert setting.end("w0") is setting.attempt
    assert stops_of(setting) == []
    assert (setting.attempt.open, list(setting.attempt.ends)) == ({"w1"}, ["w0"])
    assert setting.end("w0") is None, "it is known"
    assert setting.end("w1", attempt=2) is None
    assert setting.end("w1") is setting.attempt
    assert len(setting.running) == 0


def test_those_that_wait_pass_when_rank_0_has_returned() -> None:
    setting = Setting("w0", "w1")
    setting.report("w1", 5, waits=True)
    setting.end("w0")
    (answer,) = setting.commands()
    assert (answer.worker, answer.step, answer.decision) == ("w1", 5, Decision.CONTINUE)


@pytest.mark.parametrize(
    ("outcome", "is_symptom", "stop"),
    [
        ("failed", False, ("w0", True, False, False)),
        ("lost", False, ("w0", True, False, False)),
        ("lost", True, ("w0", False, True, False)),
        ("stopped", False, ("w0", False, False, False)),
        ("paused", False, ("w0", False, False, False)),
    ],
)
def test_how_one_rank_ends_decides_how_the_others_must(outcome: Any, is_symptom: bool, stop: Any) -> None:
    setting = Setting("w0", "w1")
    setting.end("w1", outcome, is_symptom=is_symptom)
    assert stops_of(setting) == [stop]


def test_servers_are_asked_to_end_when_all_have_returned() -> None:
    setting = Setting("w0", "s0", servers=1)
    setting.end("w0")
    assert stops_of(setting) == [("s0", False, False, True)]


def test_more_force_is_used_once_and_less_not_any_more() -> None:
    setting = Setting("w0", "w1", "w2")
    setting.end("w1", "stopped")
    assert [worker for worker, *_ in stops_of(setting)] == ["w0", "w2"]
    setting.running.end_all("enough", for_good=True)
    assert stops_of(setting) == []
    setting.end("w2", "failed")
    assert stops_of(setting) == [("w0", True, False, False)]
    assert setting.attempt.verdict == ("stopped", "enough")


def test_a_lost_worker_is_named_and_the_first_loss_counts() -> None:
    setting = Setting("w0", "w1")
    setting.report("w1", 3, waits=True)
    assert setting.running.lost(0, "w1", GONE) is setting.attempt
    first = setting.attempt.lost or ""
    assert first.startswith("rank 1 (last step 3), worker w1, was lost: ")
    assert stops_of(setting) == [("w0", True, False, False)]
    assert setting.attempt.waiting == {}
    setting.running.lost(0, "w0", GONE)
    assert setting.attempt.lost == first
    assert len(setting.running) == 0
    alone = Setting()
    assert (alone.running.lost(0, "w0", GONE).lost or "").startswith("worker w0 was lost: ")


def test_attempts_that_run_too_long_are_ended_one_by_one() -> None:
    setting = Setting(trial_timeout_s=10.0)
    other = setting.start(1, ("w1",), trial=1, at=5.0)
    setting.commands()
    assert setting.deadline() == 10.0
    setting.running.end_overdue(9.9)
    assert stops_of(setting) == []
    setting.running.end_overdue(10.0)
    assert stops_of(setting) == [("w0", True, False, False)]
    assert setting.attempt.verdict == ("failed", "ran longer than trial_timeout_s=10 and was ended")
    assert setting.deadline() == 15.0
    other.verdict = ("stopped", "by a rule")
    setting.running.end_overdue(99.0)
    assert other.verdict == ("stopped", "by a rule")
    assert stops_of(setting) == [("w1", True, False, False)]
    assert setting.deadline() is None


def test_deadlines_of_attempts_that_are_over_do_not_count() -> None:
    setting = Setting(trial_timeout_s=10.0)
    setting.end("w0", "lost")
    assert setting.deadline() is None
    second = setting.start(2, at=4.0)
    setting.running.end_overdue(13.0)
    assert second.verdict is None
    assert setting.deadline() == 14.0
    setting.running.re_form(second, "more came")
    assert setting.deadline() is None, "it is being killed"
    assert Setting().deadline() is None


def test_a_deadline_of_an_attempt_before_does_not_end_the_next() -> None:
    setting = Setting(trial_timeout_s=10.0)
    setting.end("w0", "lost")
    second = setting.start(2, at=9.0)
    setting.running.end_overdue(12.0)
    assert second.verdict is None


@pytest.mark.parametrize(("for_good", "state"), [(True, "stopped"), (False, "interrupted")])
def test_at_the_end_all_are_asked_and_all_that_wait_are_answered(for_good: bool, state: str) -> None:
    setting = Setting("w0", "w1")
    setting.report("w1", 5, waits=True)
    setting.running.end_all("the user said so", for_good=for_good)
    answer, *stops = setting.commands()
    assert (answer.worker, answer.decision) == ("w1", Decision.STOP)
    assert [(stop.worker, stop.kill) for stop in stops] == [("w0", False), ("w1", False)]
    assert setting.attempt.verdict == (state, "the user said so")


def test_a_gang_that_grows_is_killed_and_counts_as_no_loss() -> None:
    setting = Setting("w0", "w1")
    setting.attempt.saved_step = 3
    setting.running.re_form(setting.attempt, "more came")
    assert (setting.attempt.lost, setting.attempt.re_forms) == ("more came", True)
    assert [kill for _, kill, *_ in stops_of(setting)] == [True, True]
    trial = LiveTrial((), None, 0, losses=2, saved_step=3)
    trial.lost(setting.attempt)
    assert trial.losses == 2


# -- losses of a trial -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "saved", "losses"),
    [(("w0", "w1"), 4, 1), (("w0", "w1"), 3, 3), (("w0", "w1"), None, 3), (("w0",), 4, 3)],
)
def test_only_a_gang_that_got_further_starts_counting_anew(
    workers: tuple[str, ...], saved: int | None, losses: int
) -> None:
    trial = LiveTrial((), None, 0, losses=2, saved_step=3)
    attempt = Attempt(0, 1, workers)
    attempt.saved_step = saved
    trial.lost(attempt)
    assert trial.losses == losses
    assert trial.saved_step == (4 if losses == 1 else 3)


def test_milestones_that_were_judged_are_behind() -> None:
    judged = [None, 0, 1, 3, 9]
    ahead = [LiveTrial((1, 3, 9), None, 0, judged_step=step).milestones_ahead for step in judged]
    assert ahead == [(1, 3, 9), (1, 3, 9), (3, 9), (9,), ()]
    assert LiveTrial("every", None, 0, judged_step=3).milestones_ahead == "every"
