"""Every reported point is kept, whatever its name, and readable afterwards."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cargobike import experiment, trial
from cargobike.core.layout import ExperimentFolder


def test_ten_thousand_points_arrive() -> None:
    def train(x: int) -> float:
        for step in range(5000):
            trial.report(score=x + step / 10, step=step)
        return x

    result = experiment.launch(train, {"x": [0, 1]}, workers=2, quiet=True)
    for ended in result.trials:
        expected = [(step, ended.params["x"] + step / 10) for step in range(5000)]
        assert list(ended.curve) == expected
        assert list(result.curves(ended)["score"]) == expected
    assert [list(ended.curve) for ended in experiment.load(result.id).trials] == [
        list(ended.curve) for ended in result.trials
    ]


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
def test_several_metrics_and_steps_that_count_by_themselves(isolation: Any) -> None:
    def train(x: int) -> float:
        import numpy

        trial.report(loss=1.0, accuracy=numpy.float32(0.5))
        trial.report(loss=0.5)
        trial.report(accuracy=0.75, step=10)
        trial.report(loss=math.nan, accuracy=math.inf)
        trial.report(loss=0.125, step=numpy.int64(20))  # type: ignore[arg-type]
        return 0.25

    result = experiment.launch(train, {"x": [1, 2]}, metric="loss", isolation=isolation, workers=1, quiet=True)
    for ended in result.trials:
        curves = result.curves(ended)
        assert list(curves["accuracy"]) == [(0, 0.5), (10, 0.75), (11, math.inf)]
        assert [step for step, _ in curves["loss"]] == [0, 1, 11, 20]
        assert math.isnan(curves["loss"].values[2])
        assert list(ended.curve.steps) == [0, 1, 11, 20]


def test_a_report_of_what_is_no_number_fails_where_it_was_made() -> None:
    def train(x: int) -> float:
        trial.report(score="high")
        return x

    result = experiment.launch(lambda x: train(x) if x == 1 else x, {"x": [1, 2]}, quiet=True)
    [failed] = result.failures
    assert "'score' is str ('high')" in (failed.error or "")
    assert 'trial.report(score="high")' in (failed.error or "")
    assert "context.py" not in (failed.error or "")


def test_reports_before_a_failure_are_kept() -> None:
    def train(x: int) -> float:
        for step in range(100):
            trial.report(score=float(step))
        if x == 1:
            import os

            os._exit(9)
        raise ValueError("after all reports")

    result = experiment.launch(lambda x: train(x) if x else 0.0, {"x": [0, 1, 2]}, quiet=True)
    assert [len(ended.curve) for ended in result.trials] == [0, 100, 100]


def test_reports_from_a_thread_and_a_child_process_arrive() -> None:
    def train(x: int) -> float:
        import multiprocessing
        import threading

        def tell(name: str) -> None:
            for step in range(50):
                trial.report(**{name: float(step)}, step=step)

        thread = threading.Thread(target=tell, args=("threaded",))
        child = multiprocessing.get_context("fork").Process(target=tell, args=("forked",))
        child.start()
        thread.start()
        tell("main")
        thread.join()
        child.join()
        return x

    result = experiment.launch(train, {"x": [1]}, quiet=True)
    curves = result.curves(0)
    assert {name: list(curve.steps) for name, curve in curves.items()} == {
        name: list(range(50)) for name in ("main", "threaded", "forked")
    }


def test_checkpoints_are_recorded_and_stay_in_the_project() -> None:
    def train(x: int) -> float:
        for step in range(3):
            trial.report(score=float(step), step=step)
            trial.checkpoint.save({"step": step, "x": x})
        return trial.checkpoint.load()["step"]  # type: ignore[no-any-return]

    result = experiment.launch(train, {"x": [5, 6]}, quiet=True)
    assert [ended.value for ended in result.trials] == [2.0, 2.0]
    journal = (result.folder / "journal.jsonl").read_text()
    assert journal.count('"checkpoint-saved"') == 6
    assert list(ExperimentFolder(result.folder).trial(1).checkpoints.iterdir()) != []
