from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import StoreError
from cargobike.core.facts import (
    AnyFact,
    AttemptLost,
    AttemptStarted,
    CheckpointSaved,
    ExperimentEnded,
    ExperimentResumed,
    Judged,
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
from cargobike.core.layout import ProjectFolder
from cargobike.core.record import fold
from cargobike.core.records import Direction, ExperimentState, TrialState, best_of
from cargobike.experiments.reading import metrics_of, read_record
from cargobike.testing.journals import first_fact
from cargobike.testing.stores import JournalBuilder

HEADER = first_fact(at=1.0, id="x", name="n")


def suggested(trial: int = 0) -> TrialSuggested:
    return TrialSuggested(at=2.0, trial=trial, params={"lr": trial}, seed=trial, info={"rung": 0})


def test_a_trial_goes_through_its_life() -> None:
    record = fold([HEADER, WorkerJoined(at=1.5, worker="w0", host="tower"), suggested()])
    trial = record.trials[0]
    assert (trial.state, trial.params, trial.info) == (TrialState.PENDING, {"lr": 0}, {"rung": 0})
    record.apply(AttemptStarted(at=3.0, trial=0, attempt=1, workers=("w0",)))
    assert (trial.state, trial.worker, trial.started_at) == (TrialState.RUNNING, "w0", 3.0)
    record.apply(CheckpointSaved(at=3.5, trial=0, step=2, path="2"))
    record.apply(WorkerLost(at=4.0, worker="w0", reason="killed"))
    record.apply(AttemptLost(at=4.0, trial=0, attempt=1, reason="w0 was killed"))
    assert (trial.state, trial.worker) == (TrialState.PENDING, None)
    record.apply(AttemptStarted(at=5.0, trial=0, attempt=2, workers=("w1", "w2")))
    record.apply(Judged(at=5.5, trial=0, step=3, decision="pause"))
    record.apply(TrialPaused(at=6.0, trial=0, step=3))
    assert (trial.state, trial.worker) == (TrialState.PAUSED, None)
    record.apply(TrialResumed(at=7.0, trial=0, info={"rung": 1}))
    record.apply(AttemptStarted(at=8.0, trial=0, attempt=3, workers=("w1",)))
    record.apply(TrialEnded(at=9.0, trial=0, state="completed", value="inf", metrics={"a": "nan"}, peak_memory_bytes=7))
    assert (trial.state, trial.value) == (TrialState.COMPLETED, math.inf)
    assert math.isnan(trial.metrics["a"])
    assert (trial.attempts, trial.duration_s, trial.peak_memory_bytes) == (3, 6.0, 7)
    assert trial.info == {"rung": 1}
    assert [(one.number, one.ended) for one in record.attempts[0]] == [
        (1, "w0 was killed"),
        (2, "paused"),
        (3, "completed"),
    ]
    assert record.attempts[0][1].workers == ("w1", "w2")
    assert (record.workers["w0"].lost_at, record.workers["w0"].reason) == (4.0, "killed")
    assert record.checkpoints[0][0].path == "2"
    assert record.best is None


def test_an_experiment_ends_and_is_resumed() -> None:
    record = fold([HEADER, OptimizerIdled(at=2.0)])
    assert (record.state, record.duration_s) == (ExperimentState.RUNNING, 1.0)
    record.apply(ExperimentEnded(at=5.0, state="interrupted", reason="Ctrl-C"))
    assert (record.state, record.reason, record.ended_at) == (ExperimentState.INTERRUPTED, "Ctrl-C", 5.0)
    record.apply(ExperimentResumed(at=9.0))
    assert (record.state, record.reason, record.ended_at) == (ExperimentState.RUNNING, "", None)
    assert record.duration_s == 4.0, "the pause does not count"
    record.apply(OptimizerIdled(at=10.0))
    record.apply(ExperimentResumed(at=30.0))  # its driver had died after the latest fact
    record.apply(ExperimentEnded(at=31.5, state="completed"))
    assert (record.duration_s, record.away_s) == (6.5, 24.0)


@pytest.mark.parametrize("states", [["failed"], ["failed", "failed"], ["failed", "completed"], ["stopped", "failed"]])
def test_an_experiment_is_failed_if_all_of_its_trials_are(states: list[Literal["failed", "completed"]]) -> None:
    record = fold([HEADER, *map(suggested, range(len(states)))])
    for trial, state in enumerate(states):
        record.apply(
            TrialEnded(at=3.0, trial=trial, state=state, error="ValueError: no" if state == "failed" else None)
        )
    record.apply(ExperimentEnded(at=4.0, state="completed"))  # as older journals have it
    if set(states) == {"failed"}:
        assert record.state is ExperimentState.FAILED
        assert record.reason == f"all {len(states)} trials failed, the first one with:\nValueError: no"
    else:
        assert (record.state, record.reason) == (ExperimentState.COMPLETED, "")


def report(step: int, trial: int = 0, **metrics: float) -> Reported:
    packed = {name: pack_number(value) for name, value in metrics.items()}
    return Reported(at=3.0, trial=trial, step=step, metrics=packed)


def test_the_curve_holds_the_metric_asked_for() -> None:
    header = first_fact(at=1.0, id="x", name="n", metric="accuracy")
    record = fold([header, suggested(), report(1, loss=3.0, accuracy=0.1), report(2, loss=2.0)])
    assert list(record.trials[0].curve) == [(1, 0.1)]
    assert record.objective == "accuracy"


def test_the_curve_holds_the_only_metric_reported() -> None:
    record = fold([HEADER, suggested(), report(1, loss=3.0), report(2, loss=math.inf), report(3, other=1.0)])
    assert list(record.trials[0].curve) == [(1, 3.0), (2, math.inf)]
    assert record.objective == "loss"


def test_the_curve_is_empty_where_the_objective_is_unclear() -> None:
    record = fold([HEADER, suggested(), report(1, loss=3.0, accuracy=0.1), report(2, loss=3.0)])
    assert len(record.trials[0].curve) == 0


@pytest.mark.parametrize(
    "fact",
    [
        report(1, trial=7, loss=1.0),
        AttemptStarted(at=2.0, trial=7, attempt=1, workers=()),
        AttemptLost(at=2.0, trial=7, attempt=1, reason=""),
        TrialPaused(at=2.0, trial=7),
        TrialResumed(at=2.0, trial=7),
        TrialEnded(at=2.0, trial=7, state="failed"),
        CheckpointSaved(at=2.0, trial=7, step=1, path=""),
        Judged(at=2.0, trial=7, step=1, decision="stop"),
    ],
)
def test_facts_about_unknown_trials_are_refused(fact: AnyFact) -> None:
    with pytest.raises(StoreError, match="trial 7, which was never suggested"):
        fold([HEADER, suggested(), fact])


def test_a_journal_begins_once() -> None:
    with pytest.raises(StoreError, match="begins with nothing"):
        fold([])
    with pytest.raises(StoreError, match="begins with TrialSuggested"):
        fold([suggested()])
    with pytest.raises(StoreError, match="started twice"):
        fold([HEADER, HEADER])
    with pytest.raises(StoreError, match="suggested twice"):
        fold([HEADER, suggested(), suggested()])


@given(
    values=st.lists(st.sampled_from([0.1, 0.5, 0.5, 0.9, math.nan, math.inf, -math.inf]), max_size=8),
    order=st.randoms(use_true_random=False),
    direction=st.sampled_from(["max", "min"]),
)
def test_the_best_so_far_is_the_best_of_all(values: list[float], order: random.Random, direction: Direction) -> None:
    record = fold([first_fact(at=1.0, id="x", name="n", direction=direction)])
    for number in range(len(values)):
        record.apply(suggested(number))
    numbers = list(range(len(values)))
    order.shuffle(numbers)
    for number in numbers:
        record.apply(TrialEnded(at=3.0, trial=number, state="completed", value=pack_number(values[number])))
        assert record.best is best_of(record.trials, direction)
    assert record.counts[TrialState.COMPLETED] == len(values)
    assert sum(record.counts.values()) == len(values)


def test_all_metrics_of_a_trial_can_be_read(tmp_path: Path) -> None:
    journal = JournalBuilder(ProjectFolder(tmp_path), "20270101-000000-aaaa")
    one, other = journal.start(lr=1), journal.start(lr=2)
    journal.report(one, 1, loss=3.0, accuracy=0.1)
    journal.report(other, 1, loss=9.0)
    journal.report(one, 2, loss=math.nan)
    journal.end()
    curves = metrics_of(journal.folder.journal, one)
    assert {name: repr(list(curve)) for name, curve in curves.items()} == {
        "loss": "[(1, 3.0), (2, nan)]",
        "accuracy": "[(1, 0.1)]",
    }
    assert metrics_of(journal.folder.journal, 12) == {}


def test_a_record_without_an_end_is_running_or_lost(tmp_path: Path) -> None:
    journal = JournalBuilder(ProjectFolder(tmp_path), "20270101-000000-aaaa").hold()
    assert read_record(journal.folder).state is ExperimentState.RUNNING
    journal.let_go()
    assert read_record(journal.folder).state is ExperimentState.LOST


def test_a_damaged_journal_is_not_read_as_a_shorter_one(tmp_path: Path) -> None:
    journal = JournalBuilder(ProjectFolder(tmp_path), "20270101-000000-aaaa")
    journal.complete(0.5, lr=0.1)
    journal.end()
    path = journal.folder.journal
    path.write_bytes(path.read_bytes().replace(b'"value":0.5', b'"value":0.6'))
    with pytest.raises(StoreError, match="damaged"):
        read_record(journal.folder)


def test_the_cost_is_the_time_that_workers_were_there_whatever_became_of_their_drivers() -> None:
    record = fold([first_fact(at=0.0, id="x", name="x")])
    record.apply(WorkerJoined(at=1.0, worker="w0"))
    record.apply(WorkerJoined(at=2.0, worker="w1"))
    record.apply(WorkerLost(at=5.0, worker="w1", reason="released"))
    record.apply(OptimizerIdled(at=7.0))
    assert record.worker_seconds == (7 - 1) + (5 - 2)
    record.apply(ExperimentResumed(at=100.0))  # the driver had died after 7
    assert record.worker_seconds == 9
    record.apply(WorkerJoined(at=101.0, worker="w0"))
    record.apply(ExperimentEnded(at=103.0, state="completed"))
    assert record.worker_seconds == 9 + 2
