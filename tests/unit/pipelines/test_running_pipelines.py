"""Pipelines that run: parallel steps, maps, conditions, what is recorded, what fails and how."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cargobike import experiment, models, pipelines
from cargobike.core.layout import ProjectFolder
from cargobike.errors import GateError, InvalidInputError, StepFailedError
from cargobike.pipelines import RunState, StepState
from cargobike.pipelines.processes.elsewhere import call_elsewhere
from support import pipeline_steps as steps
from support.far_engine import FarEngine
from support.pipeline_steps import count


def test_steps_pass_results_along_and_conditions_are_pythons_own() -> None:
    def pipeline(items: int) -> Any:
        numbers = steps.add.map(range(items), right=10)
        total = steps.add(numbers[0], numbers[1])
        if total > 20:
            return {"total": total, "all": numbers}
        return None

    run = pipelines.run(pipeline, items=3)

    assert run.state is RunState.COMPLETED
    assert run.result == {"total": 21, "all": [10, 11, 12]}
    assert [(step.number, step.name, step.state) for step in run.steps] == [
        (number, "add", StepState.COMPLETED) for number in (1, 2, 3, 4)
    ]
    assert run.steps[3].after == (1, 2)
    assert str(run.steps[3].inputs["left"]) == "step 1"
    assert run.logs(4) == ("adding 10 11\n", "")
    assert run.steps[0].cpu_s > 0
    assert run.steps[0].peak_memory_bytes > 1_000_000
    assert run.params == {"items": 3}
    assert pipelines.get("last").id == run.id
    assert [one.id for one in pipelines.list()] == [run.id]


def test_values_travel_in_open_formats_where_they_have_one() -> None:
    def pipeline() -> Any:
        return steps.add(np.arange(3.0), 1), steps.add((1, 2), (3,)), steps.add(float("inf"), 0)

    run = pipelines.run(pipeline)

    array, numbers, infinite = run.result
    assert array.tolist() == [1.0, 2.0, 3.0]
    assert (numbers, infinite) == ((1, 2, 3), float("inf"))
    assert [step.result.form for step in run.steps if step.result] == ["numpy", "plain", "plain"]
    assert run.value(1).dtype == np.float64


def test_a_cached_step_is_not_run_again(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def pipeline(value: Any) -> Any:
        return steps.counted(str(marks), steps.add(value, 1))

    first = pipelines.run(pipeline, value=1)
    second = pipelines.run(pipeline, value=1)
    third = pipelines.run(pipeline, value=2)
    fourth = pipelines.run(pipeline, value=2, use_cache=False)

    assert [run.result for run in (first, second, third, fourth)] == [2, 2, 3, 3]
    assert [run.steps[1].state for run in (first, second, third, fourth)] == [
        StepState.COMPLETED,
        StepState.CACHED,
        StepState.COMPLETED,
        StepState.COMPLETED,
    ]
    assert second.steps[1].source == f"{first.id}/2"
    assert count(marks, "counted") == 3


def test_a_step_is_tried_again_as_said(tmp_path: Path) -> None:
    run = pipelines.run(lambda: steps.flaky(str(tmp_path), 2))

    assert run.result == 3
    assert [attempt.error.splitlines()[-1] for attempt in run.steps[0].attempts] == [
        "ValueError: attempt 1",
        "ValueError: attempt 2",
    ]


def test_a_failure_skips_what_needs_it_and_nothing_else() -> None:
    def pipeline() -> Any:
        bad = steps.failing("no such file")
        skipped = steps.add(bad, 1)
        good = steps.add(1, 2)
        try:
            skipped.result()
        except StepFailedError:
            return good
        return None

    run = pipelines.run(pipeline)

    assert run.result == 3
    assert [step.state for step in run.steps] == [StepState.FAILED, StepState.SKIPPED, StepState.COMPLETED]
    assert "Step 1 (failing)" in run.steps[1].error


def test_a_gate_that_is_not_passed_is_a_decision_and_no_failure() -> None:
    def pipeline() -> str:
        version = models.register("answer", len, metrics={"accuracy": 0.4})
        try:
            version.promote("champion", when="accuracy > 0.5")
        except GateError as error:
            return str(error)
        return "passed"

    run = pipelines.run(pipeline)

    assert "does not pass 'accuracy > 0.5'" in run.result
    assert [step.state for step in run.steps] == [StepState.COMPLETED, StepState.REFUSED]
    assert run.state is RunState.COMPLETED


def test_a_refusal_that_the_pipeline_does_not_handle_ends_the_run_all_the_same() -> None:
    def refuse() -> None:
        raise GateError("it does not pass")

    with pytest.raises(StepFailedError, match="it does not pass"):
        pipelines.run(lambda: steps.add(pipelines.step(refuse)(), 1).result())

    run = pipelines.get("last")
    assert [step.state for step in run.steps] == [StepState.REFUSED, StepState.SKIPPED]
    assert run.state is RunState.FAILED


def test_a_failure_that_the_pipeline_does_not_handle_ends_the_run() -> None:
    def pipeline() -> Any:
        steps.failing("no such file")
        return steps.add(1, 2)

    with pytest.raises(StepFailedError, match=r"Step 1 \(failing\) of run .* failed:\n(.*\n)*ValueError: no such file"):
        pipelines.run(pipeline)

    run = pipelines.get("last")
    assert run.state is RunState.FAILED
    assert run.steps[1].state is StepState.COMPLETED  # what ran beside it was not lost
    assert "cargobike/pipelines" not in run.steps[0].error


@pytest.mark.parametrize(
    ("step", "match"),
    [
        (steps.hanging, "longer than 0.3 s"),
        (steps.crashing, "SIGSEGV"),
        (lambda: steps.generator(3), r"What it returned\['rows'\]\[1\] is a builtins.generator, which cannot be kept"),
    ],
)
def test_steps_that_end_badly_say_how(step: Any, match: str) -> None:
    def pipeline() -> Any:
        return step()

    with pytest.raises(StepFailedError, match=match):
        pipelines.run(pipeline)


def test_what_a_step_leaves_behind_is_ended(tmp_path: Path) -> None:
    run = pipelines.run(lambda: steps.leaving(str(tmp_path)))

    assert not Path(f"/proc/{run.result}").exists()


def test_a_step_outside_of_a_pipeline_is_a_function() -> None:
    result = steps.add(1, steps.add(1, 1))

    assert result.done
    assert result == 3
    assert f"{result:03d}" == "003"
    with pytest.raises(AttributeError, match=r"write \.result\(\)\.denominator"):
        _ = result.denominator


def test_mistakes_are_said_all_at_once() -> None:
    def pipeline(rate: float) -> None: ...

    with pytest.raises(InvalidInputError, match=r"no parameter 'rtae'; it has rate. Did(.|\n)*is missing"):
        pipelines.run(pipeline, rtae=object())
    with pytest.raises(InvalidInputError, match=r"retries must be(.|\n)*timeout must be(.|\n)*"):
        pipelines.step(pipeline, retries=-1, timeout="soon")
    with pytest.raises(InvalidInputError, match="calls steps"):
        pipelines.run(steps.add)
    with pytest.raises(InvalidInputError, match="cannot be called so: missing a required argument: 'left'"):
        pipelines.run(lambda: steps.add(right=1))
    with pytest.raises(InvalidInputError, match="argument 'left' of add is a lock"):
        pipelines.run(lambda: steps.add(threading.Lock()))


def test_a_step_may_ask_for_another_engine(tmp_path: Path) -> None:
    base = np.arange(3)

    result = call_elsewhere(
        lambda by: base * by, [2], {}, engine=FarEngine(), name="times", project=ProjectFolder(tmp_path)
    )

    assert result.tolist() == [0, 2, 4]
    assert experiment.load("last").name == "times"
    with pytest.raises(InvalidInputError, match="there is no engine 'sparc'; known are k8s, local, spark"):
        pipelines.step(print, engine="sparc")


def test_a_run_is_begun_once() -> None:
    pipelines.run(lambda: 1, run_id="nightly-1", cause={"schedule": "nightly"})

    with pytest.raises(InvalidInputError, match="There is a run nightly-1 already"):
        pipelines.run(lambda: 1, run_id="nightly-1")
    assert pipelines.get("nightly-1").cause == {"schedule": "nightly"}


def test_steps_are_not_called_in_threads() -> None:
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            steps.add(1)
        except InvalidInputError as error:
            errors.append(error)

    def pipeline() -> None:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    pipelines.run(pipeline)

    assert "in a thread that a pipeline started" in str(errors[0])
