"""Every reported point is kept, whatever its name, and readable afterwards."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cargobike import experiment, trial
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder


def test_ten_thousand_points_arrive() -> None:
    def train(x: int) -> float:
        for step in range(5000):
            trial.report(score=x + step / 10, step=step)
        return x

    result = experiment.launch(train, {"x": [0, 1]}, workers=2, quiet=True)
    assert len(result.trials) == 2
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
    assert len(result.trials) == 2
    for ended in result.trials:
        curves = result.curves(ended)
        assert list(curves["accuracy"]) == [(0, 0.5), (10, 0.75), (11, math.inf)]
        assert [step for step, _ in curves["loss"]] == [0, 1, 11, 20]
        assert math.isnan(curves["loss"].values[2])
        assert list(ended.curve.steps) == [0, 1, 11, 20]


def test_metrics_may_be_reported_in_a_dict_and_never_without_a_name() -> None:
    trial.report({"loss": 1.0}, step=1)
    trial.report({"loss": 1.0}, accuracy=0.5)
    with pytest.raises(
        InvalidInputError, match=r"report was given float \(0\.5\), int \(3\) without a name.*loss=0\.3"
    ):
        trial.report(0.5, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="'loss' was reported twice"):
        trial.report({"loss": 1.0}, loss=2.0)


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


@pytest.mark.parametrize(
    "step", [2**63, -(2**63) - 1, 10**400, math.nan, math.inf, 0.5, True, "3"], ids=lambda step: repr(step)[:20]
)
def test_a_step_that_is_no_number_of_64_bits_is_refused_where_it_is_named(step: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"step must (be a whole number|fit into 64 bits)"):
        trial.report(loss=1.0, step=step)
    if not isinstance(step, str):
        with pytest.raises(InvalidInputError, match=r"step must (be a whole number|fit into 64 bits)"):
            trial.checkpoint.save("state", step=step)


def test_one_trial_that_reports_what_cannot_be_sent_fails_and_the_others_go_on() -> None:
    """A report or a result over 1 MiB, a step beyond 64 bits, a name that is no text."""

    def train(x: int) -> Any:
        many = {f"{'m' * 100}{number}": float(number) for number in range(15_000)}
        if x == 0:
            trial.report(many)
        if x == 1:
            return {"score": 1.0, **many}
        if x == 2:
            trial.report(score=1.0, step=2**63 - 1)
            trial.report(score=1.0)
        if x == 3:
            trial.report({"\ud800": 1.0})
        if x == 4:
            trial.report({1: 0.5})  # type: ignore[dict-item]
        if x == 5:
            raise ValueError("\ud800" + "long " * 2_000_000)
        return {"score": float(x)}

    result = experiment.launch(
        train, {"x": list(range(7))}, metric="score", workers=1, isolation="reuse", max_failures=10, quiet=True
    )
    assert [ended.state.value for ended in result.trials] == ["failed"] * 6 + ["completed"]
    assert {ended.attempts for ended in result.trials} == {1}
    errors = [ended.error or "" for ended in result.trials]
    assert "A report takes 1," in errors[0]
    assert "at most 1 MiB can be sent at once" in errors[0]
    assert "What the train function returned takes 1," in errors[1]
    assert "at most 1 MiB can be sent at once" in errors[1]
    assert "step must fit into 64 bits" in errors[2]
    assert "A report holds something that cannot be written down" in errors[3]
    assert "the name int (1) is no text; use a str" in errors[4]
    assert "ValueError: \\ud800long" in errors[5]
    assert "characters left out" in errors[5]
    assert all("cargobike/workers" not in error for error in errors), "our own code is not to blame"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_report_that_was_refused_leaves_no_gap(workers: int) -> None:
    def train(x: int) -> float:
        trial.report(score=1.0)
        with pytest.raises(InvalidInputError):
            trial.report({"n" * 2_000_000: 1.0})
        trial.report(score=2.0, step=5)
        trial.checkpoint.save("state")
        return 2.0

    result = experiment.launch(train, {"x": [1]}, workers=workers, quiet=True)
    assert list(result.trials[0].curves["score"]) == [(0, 1.0), (5, 2.0)]
    assert result.trials[0].reports == 2


def test_threads_and_forked_processes_report_and_nothing_is_lost() -> None:
    def train(x: int) -> float:
        import os
        from concurrent.futures import ThreadPoolExecutor

        for part in range(3):
            child = os.fork()
            if child == 0:
                for step in range(5):
                    trial.report(child=float(step), step=10 * part + step)
                os._exit(0)
            os.waitpid(child, 0)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda step: trial.report(score=float(step), step=step), range(500)))
        return 1.0

    result = experiment.launch(train, {"x": [1]}, workers=1, metric="score", quiet=True)
    curves = result.trials[0].curves
    assert sorted(curves["score"]) == [(step, float(step)) for step in range(500)]
    assert list(curves["child"].steps) == [10 * part + step for part in range(3) for step in range(5)]
    assert result.trials[0].reports == 515
