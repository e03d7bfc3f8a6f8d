from __future__ import annotations

import math
import traceback
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.facts import (
    AttemptLost,
    AttemptStarted,
    ExperimentEnded,
    ExperimentResumed,
    ExperimentStarted,
    Fact,
    OptimizerIdled,
    Reported,
    TrialEnded,
    TrialPaused,
    TrialResumed,
    TrialSuggested,
    WorkerJoined,
    WorkerLost,
    pack_number,
)
from cargobike.core.goals import pareto_front
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Direction, ExperimentState, Trial, TrialState, best_of
from cargobike.experiments.display.progress import Progress
from cargobike.experiments.display.snapshot import failure_line
from cargobike.experiments.display.text import best as best_words
from cargobike.testing.journals import first_fact


def begin(
    num_trials: int | None = 10, direction: Direction = "max", workers: int = 2, at: float = 100.0
) -> ExperimentStarted:
    return first_fact(at=at, id="e1", name="digits", num_trials=num_trials, direction=direction, workers=workers)


def run(trial: int, at: float = 101.0, worker: str = "w0") -> list[Fact]:
    return [
        TrialSuggested(at=at, trial=trial, params={"x": trial}),
        AttemptStarted(at=at, trial=trial, attempt=1, workers=(worker,)),
    ]


def completed(trial: int, value: float, at: float = 102.0) -> TrialEnded:
    return TrialEnded(at=at, trial=trial, state="completed", value=pack_number(value))


class Driven(Progress):
    """A progress whose record is kept up to date first, as the driver does."""

    def apply(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            self._record.apply(fact)  # type: ignore[arg-type]
        super().apply(facts)


def folded(start: ExperimentStarted, *facts: Fact) -> Progress:
    progress = Driven(ExperimentRecord(start))
    progress.apply(facts)
    return progress


@pytest.mark.parametrize(("direction", "winner"), [("max", 1), ("min", 0)])
def test_best_follows_the_direction_and_brings_its_parameters(direction: Direction, winner: int) -> None:
    progress = folded(begin(direction=direction))
    for trial, value in enumerate([0.1, 0.9, 0.5]):
        progress.apply([*run(trial), completed(trial, value)])
    best = progress.snapshot(103.0).best
    assert best is not None
    assert best.number == winner
    assert best.params == {"x": winner}


@given(
    values=st.lists(st.one_of(st.none(), st.floats(), st.sampled_from([0.0, 1.0])), max_size=12),
    direction=st.sampled_from(["max", "min"]),
    order=st.randoms(use_true_random=False),
)
def test_best_is_the_one_a_result_would_name(values: list[float | None], direction: Direction, order: object) -> None:
    trials = [
        Trial({}, number, TrialState.FAILED if value is None else TrialState.COMPLETED, value)
        for number, value in enumerate(values)
    ]
    progress = folded(begin(direction=direction))
    ends: list[Fact] = [
        TrialEnded(at=102.0, trial=trial.number, state="failed")
        if trial.value is None
        else completed(trial.number, trial.value)
        for trial in trials
    ]
    order.shuffle(ends)  # type: ignore[attr-defined]
    progress.apply([fact for trial in trials for fact in run(trial.number)])
    progress.apply(ends)
    expected = best_of(trials, direction)
    best = progress.snapshot(103.0).best
    assert (best.number if best else None) == (expected.number if expected else None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_wins(value: float) -> None:
    progress = folded(begin(), *run(0), completed(0, value))
    assert progress.snapshot(103.0).best is None
    progress.apply([*run(1), completed(1, -5.0), *run(2), completed(2, value)])
    best = progress.snapshot(103.0).best
    assert best is not None
    assert best.value == -5.0


def test_counts_follow_every_state() -> None:
    progress = folded(begin(workers=3), *(WorkerJoined(at=100.5, worker=f"w{n}") for n in range(3)))
    for trial in range(5):
        progress.apply(run(trial, worker=f"w{trial % 3}"))
        if trial < 3:
            state = ("completed", "stopped", "failed")[trial]
            progress.apply([TrialEnded(at=102.0, trial=trial, state=state, value=1.0)])  # type: ignore[arg-type]
    progress.apply([TrialSuggested(at=103.0, trial=5, params={})])
    now = progress.snapshot(104.0)
    assert (now.completed, now.stopped, now.failed) == (1, 1, 1)
    assert (now.running, now.paused, now.pending) == (2, 0, 1)
    assert (now.ended, now.total) == (3, 10)
    assert (now.workers_busy, now.workers_joined, now.workers_asked) == (2, 3, 3)


def test_a_paused_trial_frees_its_worker_and_comes_back() -> None:
    progress = folded(begin(), WorkerJoined(at=100.5, worker="w0"), *run(0), TrialPaused(at=102.0, trial=0, step=3))
    now = progress.snapshot(103.0)
    assert (now.running, now.paused, now.pending, now.workers_busy) == (0, 1, 0, 0)
    progress.apply([TrialResumed(at=104.0, trial=0)])
    now = progress.snapshot(104.0)
    assert (now.running, now.paused, now.pending) == (0, 0, 1)
    progress.apply([AttemptStarted(at=104.0, trial=0, attempt=2, workers=("w0",))])
    now = progress.snapshot(104.0)
    assert (now.running, now.paused, now.pending, now.workers_busy) == (1, 0, 0, 1)
    progress.apply([completed(0, 0.5)])
    best = progress.snapshot(105.0).best
    assert best is not None
    assert best.params == {"x": 0}


def test_a_trial_stopped_while_paused_is_counted_once() -> None:
    progress = folded(begin(), *run(0), TrialPaused(at=102.0, trial=0), TrialEnded(at=103.0, trial=0, state="stopped"))
    now = progress.snapshot(104.0)
    assert (now.paused, now.stopped, now.pending) == (0, 1, 0)


def test_a_lost_attempt_is_retried_and_not_a_failure() -> None:
    progress = folded(
        begin(),
        WorkerJoined(at=100.5, worker="w0"),
        *run(0),
        WorkerLost(at=102.0, worker="w0", reason="killed"),
        AttemptLost(at=102.0, trial=0, attempt=1, reason="killed"),
    )
    now = progress.snapshot(102.0)
    assert (now.running, now.pending, now.failed, now.retries) == (0, 1, 0, 1)
    assert (now.workers_busy, now.workers_joined) == (0, 0)
    progress.apply([WorkerJoined(at=103.0, worker="w1"), AttemptStarted(at=103.0, trial=0, attempt=2, workers=("w1",))])
    now = progress.snapshot(103.0)
    assert (now.running, now.pending, now.workers_busy) == (1, 0, 1)
    progress.apply([completed(0, 1.0, at=104.0)])
    assert progress.snapshot(104.0).completed == 1


def test_a_gang_keeps_all_its_workers_busy() -> None:
    progress = folded(
        begin(workers=4),
        *(WorkerJoined(at=100.5, worker=f"w{n}") for n in range(4)),
        TrialSuggested(at=101.0, trial=0, params={}),
        AttemptStarted(at=101.0, trial=0, attempt=1, workers=("w0", "w1", "w2")),
    )
    now = progress.snapshot(102.0)
    assert (now.running, now.workers_busy) == (1, 3)


def test_only_the_last_failures_are_kept_one_line_each() -> None:
    progress = folded(begin(num_trials=100))
    for trial in range(9):
        error = f"Traceback (most recent call last):\n  File 'a.py', line 1\nValueError: number {trial}\nmore"
        progress.apply([*run(trial), TrialEnded(at=102.0, trial=trial, state="failed", error=error)])
    now = progress.snapshot(103.0)
    assert now.failed == 9
    assert [(failure.trial, failure.line) for failure in now.failures] == [
        (trial, f"ValueError: number {trial}") for trial in (6, 7, 8)
    ]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (None, "no reason given"),
        (" \n ", "no reason given"),
        ("killed by signal SIGSEGV\nlast output: x", "killed by signal SIGSEGV"),
        (
            "Traceback (most recent call last):\n  File\nKeyError: 'a'\n\nDuring handling of it:\n\n"
            "Traceback (most recent call last):\n  File\nRuntimeError: b\nlast output:\n  zzz",
            "RuntimeError: b",
        ),
    ],
)
def test_the_line_of_an_error_that_says_most(error: str | None, line: str) -> None:
    assert failure_line(error) == line


def test_the_line_of_a_group_of_errors_is_its_last_member() -> None:
    try:
        raise ExceptionGroup("both", [KeyError("a"), ValueError("b is wrong")])
    except ExceptionGroup:
        assert failure_line(traceback.format_exc()) == "ValueError: b is wrong"


def test_phases_follow_what_happens() -> None:
    progress = folded(begin())
    assert progress.snapshot(100.0).phase == "starting workers"
    progress.set_phase("importing torch…")
    assert progress.snapshot(100.0).phase == "importing torch…"
    progress.apply(run(0))
    assert progress.snapshot(101.0).phase == "searching"
    progress.set_phase("stopping")
    progress.apply(run(1))
    assert progress.snapshot(101.0).phase == "stopping"
    progress.apply([ExperimentEnded(at=110.0, state="interrupted", reason="Ctrl-C")])
    progress.set_phase("too late")
    now = progress.snapshot(500.0)
    assert (now.phase, now.state, now.reason) == ("interrupted", ExperimentState.INTERRUPTED, "Ctrl-C")
    assert now.elapsed_s == 10.0
    assert now.eta_s is None


def test_one_tracked_run_is_a_total_of_one() -> None:
    start = first_fact(at=100.0, id="e1", name="one", params={"lr": 1.0})
    progress = folded(start, *run(0), Reported(at=102.0, trial=0, step=7, metrics={"loss": "nan", "acc": 0.5}))
    now = progress.snapshot(103.0)
    assert (now.total, now.phase) == (1, "running")
    assert now.latest is not None
    assert (now.latest.trial, now.latest.step, now.latest.metrics["acc"]) == (0, 7, 0.5)
    assert math.isnan(now.latest.metrics["loss"])


def test_an_exhausted_optimizer_settles_the_total() -> None:
    progress = folded(begin(num_trials=None))
    assert progress.snapshot(100.0).total is None
    for trial in range(4):
        progress.apply([*run(trial, at=101.0 + trial), completed(trial, 1.0, at=102.0 + trial)])
    assert progress.snapshot(106.0).eta_s is None
    progress.apply([TrialSuggested(at=106.0, trial=4, params={}), OptimizerIdled(at=106.0, exhausted=True)])
    now = progress.snapshot(106.0)
    assert now.total == 5
    assert now.eta_s is not None


def test_another_driver_takes_over_what_the_first_left_running() -> None:
    progress = folded(begin(), WorkerJoined(at=100.5, worker="w0"), *run(0), completed(0, 0.7), *run(1), *run(2))
    lost = (AttemptLost(at=5000.0, trial=trial, attempt=1, reason="its driver was lost") for trial in (1, 2))
    progress.apply([ExperimentResumed(at=5000.0), *lost])
    now = progress.snapshot(5001.0)
    assert (now.completed, now.running, now.pending, now.workers_joined, now.workers_busy) == (1, 0, 2, 0, 0)
    assert (now.elapsed_s, now.rate_per_s, now.phase) == (1.0, None, "starting workers")
    assert now.best is not None
    progress.apply([AttemptStarted(at=5002.0, trial=1, attempt=2, workers=("w0",)), completed(1, 0.9, at=5004.0)])
    now = progress.snapshot(5004.0)
    assert (now.completed, now.running, now.pending) == (2, 0, 1)
    assert now.rate_per_s == pytest.approx(0.5)


def steady(num_trials: int, ended: int, workers: int, length_s: float) -> tuple[Progress, float]:
    """Fold a search in which every trial takes `length_s`, up to the time at which `ended` are done."""
    progress = folded(begin(num_trials=num_trials, workers=workers))
    at = 101.0
    for first in range(0, ended, workers):
        batch = range(first, min(ended, first + workers))
        for trial in batch:
            progress.apply(run(trial, at=at, worker=f"w{trial % workers}"))
        at += length_s
        for trial in batch:
            progress.apply([completed(trial, 1.0, at=at)])
    for trial in range(ended, min(num_trials, ended + workers)):
        progress.apply(run(trial, at=at, worker=f"w{trial % workers}"))
    return progress, at


@pytest.mark.parametrize("length_s", [0.001, 0.2, 7.0, 3600.0])
@pytest.mark.parametrize("workers", [1, 4])
def test_rate_and_estimate_of_a_steady_search(length_s: float, workers: int) -> None:
    progress, at = steady(num_trials=400, ended=200, workers=workers, length_s=length_s)
    now = progress.snapshot(at)
    assert now.rate_per_s == pytest.approx(workers / length_s, rel=0.05)
    assert now.eta_s == pytest.approx(200 * length_s / workers, rel=0.05)


def test_the_estimate_counts_down_within_a_batch_and_grows_when_trials_are_stuck() -> None:
    progress, at = steady(num_trials=40, ended=20, workers=4, length_s=60.0)
    truth_s = 300.0
    for waited_s in (0.0, 20.0, 50.0):
        eta_s = progress.snapshot(at + waited_s).eta_s
        assert eta_s == pytest.approx(truth_s - waited_s, abs=1.0)
    stuck_s = progress.snapshot(at + 3600.0).eta_s
    assert stuck_s is not None
    assert stuck_s > truth_s


def test_the_rate_follows_a_change_of_speed() -> None:
    progress, at = steady(num_trials=10_000, ended=200, workers=1, length_s=1.0)
    for trial in range(200, 600):
        progress.apply(run(trial, at=at)[trial == 200 :])  # that one runs already
        at += 0.1
        progress.apply([completed(trial, 1.0, at=at)])
    assert progress.snapshot(at).rate_per_s == pytest.approx(10.0, rel=0.05)


@given(
    ends_s=st.lists(st.floats(0.0, 1e4), max_size=40),
    waited_s=st.floats(-5.0, 1e4),
    num_trials=st.one_of(st.none(), st.integers(0, 60)),
)
def test_figures_are_sane_whatever_the_timing(ends_s: list[float], waited_s: float, num_trials: int | None) -> None:
    progress = folded(begin(num_trials=num_trials, at=0.0))
    at = 0.0
    for trial, gap_s in enumerate(ends_s):
        progress.apply(run(trial, at=at))
        at += gap_s
        progress.apply([completed(trial, 1.0, at=at)])
    now = progress.snapshot(at + waited_s)
    assert now.elapsed_s >= 0.0
    assert now.rate_per_s is None or (now.rate_per_s > 0 and math.isfinite(now.rate_per_s))
    assert now.eta_s is None or (now.eta_s >= 0 and math.isfinite(now.eta_s))
    assert (now.eta_s is None) or (num_trials is not None and now.ended < num_trials)


def test_memory_does_not_grow_with_ended_trials() -> None:
    progress = folded(begin(num_trials=None))
    for trial in range(5_000):
        progress.apply([*run(trial, at=100.0 + trial), completed(trial, float(trial), at=101.0 + trial)])
    kept = [value for value in vars(progress).values() if isinstance(value, dict | set | list)]
    assert sum(len(value) for value in kept) < 50
    assert len(progress._pace._samples) <= 240


def test_the_best_keeps_the_limits_as_in_a_result() -> None:
    start = first_fact(at=100.0, id="e1", name="digits", num_trials=3, constraints=("latency <= 50",))
    progress = folded(start)
    for trial, (value, latency) in enumerate([(0.5, 20.0), (0.9, 80.0), (0.7, 50.0)]):
        end = TrialEnded(at=102.0, trial=trial, state="completed", value=value, metrics={"latency": latency})
        progress.apply([*run(trial), end])
    best = progress.snapshot(103.0).best
    assert best is not None
    assert (best.number, best.value) == (2, 0.7)


def test_several_objectives_have_the_compromises_of_a_result() -> None:
    objectives: dict[str, Direction] = {"accuracy": "max", "latency": "min"}
    start = first_fact(at=100.0, id="e1", name="digits", objectives=objectives, constraints=("latency <= 50",))
    progress = folded(start)
    for trial, (accuracy, latency) in enumerate([(0.5, 20.0), (0.9, 80.0), (0.4, 30.0), (0.7, 40.0), (0.5, 10.0)]):
        end = TrialEnded(at=102.0, trial=trial, state="completed", metrics={"accuracy": accuracy, "latency": latency})
        progress.apply([*run(trial), end])
        front = progress.snapshot(103.0).front
        assert list(front) == pareto_front(progress._record.trials.values(), objectives)
    assert [trial.number for trial in front] == [3, 4]
    assert best_words(progress.snapshot(103.0)) == (
        "2 best compromises: accuracy 0.7, latency 40 in trial 3; accuracy 0.5, latency 10 in trial 4"
    )


def test_an_experiment_that_is_taken_up_shows_what_it_had_reached() -> None:
    before = folded(begin(), *run(0), completed(0, 0.7), *run(1), TrialEnded(at=103.0, trial=1, state="failed"))
    now = Progress(before._record).snapshot(104.0)
    assert (now.completed, now.failed) == (1, 1)
    assert now.best is not None
    assert [failure.trial for failure in now.failures] == [1]
