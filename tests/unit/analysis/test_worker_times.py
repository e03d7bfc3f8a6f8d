from __future__ import annotations

import pytest

from cargobike.analysis.timeline import timeline
from cargobike.core.facts import AttemptLost, AttemptStarted, TrialEnded, TrialSuggested, WorkerJoined, WorkerLost
from support.sample_records import Story, lively


def test_busy_idle_and_lost_time_are_told_apart() -> None:
    story = Story()
    at = story.facts[0].at
    story.add(
        WorkerJoined(at=at + 1, worker="w0", host="tower"),
        WorkerJoined(at=at + 1, worker="w1", host="tower"),
        TrialSuggested(at=at + 1, trial=0, params={}),
        AttemptStarted(at=at + 2, trial=0, attempt=1, workers=("w0", "w1")),
        TrialEnded(at=at + 6, trial=0, state="completed", value=1.0),
        TrialSuggested(at=at + 6, trial=1, params={}),
        AttemptStarted(at=at + 6, trial=1, attempt=1, workers=("w1",)),
        WorkerLost(at=at + 8, worker="w1", reason="killed"),
        AttemptLost(at=at + 8, trial=1, attempt=1, reason="worker w1 was killed"),
        AttemptStarted(at=at + 9, trial=1, attempt=2, workers=("w0",)),
    )
    story.now_s = at + 10
    found = timeline(story.end())
    assert [(each.worker, each.start_s, each.end_s, each.outcome, each.trials) for each in found.busy] == [
        ("w0", 2.0, 6.0, "completed", (0,)),
        ("w1", 2.0, 6.0, "completed", (0,)),
        ("w1", 6.0, 8.0, "lost", (1,)),
        ("w0", 9.0, 11.0, "running", (1,)),
    ]
    assert found.busy[2].reason == "worker w1 was killed"
    times = {worker.name: worker for worker in found.workers}
    assert (times["w0"].busy_s, times["w0"].idle_s, times["w0"].left_s) == (6.0, 4.0, 11.0)
    assert (times["w1"].busy_s, times["w1"].idle_s, times["w1"].lost_because) == (6.0, 1.0, "killed")
    assert found.utilisation == pytest.approx(12 / 17)


def test_very_many_bars_are_drawn_together_and_no_time_is_lost() -> None:
    record = lively(600)
    exact, rough = timeline(record), timeline(record, most_bars=60)
    assert len(rough.busy) <= 4 * 60 < len(exact.busy) / 2
    assert {number for each in rough.busy for number in each.trials} == {
        number for each in exact.busy for number in each.trials
    }
    assert rough.utilisation == exact.utilisation
    assert rough.workers == exact.workers


def test_of_very_many_workers_the_idlest_are_shown() -> None:
    story = Story()
    for index in range(30):
        story.add(WorkerJoined(at=story.now_s, worker=f"w{index}"))
    for index in range(30):
        if index % 3:
            story.complete(story.start({}, worker=f"w{index}"), 1.0)
    record = story.end()
    shown = timeline(record, most_workers=10)
    assert len(shown.workers) == 10
    assert {worker.name for worker in shown.workers if worker.busy_s == 0} == {f"w{index}" for index in range(0, 30, 3)}
    assert {each.worker for each in shown.busy} <= {worker.name for worker in shown.workers}


def test_nobody_there_is_no_time_used() -> None:
    assert timeline(Story().so_far()).utilisation == 0.0
