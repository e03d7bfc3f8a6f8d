"""Our own calls inside a pipeline that really runs: made once, recorded by reference, found again after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cargobike import data, experiment, models, pipelines
from cargobike.errors import GateError, StepFailedError
from cargobike.pipelines import StepState
from support import pipeline_steps as steps
from support.trains import parabola


def double(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


def test_data_search_and_model_are_steps_and_are_made_once(tmp_path: Path) -> None:
    def retrain() -> Any:
        table = data.write({"x": [1.0, 2.0, 3.0]}, "numbers")
        result = experiment.launch(parabola, {"x": steps.add([1], [2, 3])}, workers=0, quiet=True)
        assert result.best is not None
        score: Any = steps.add(0.0, result.best.value)
        model = models.register("double", double, metrics={"score": score})
        steps.until_allowed(str(tmp_path), model.version).result()
        return {"table": table, "model": model}

    with pytest.raises(StepFailedError, match="not allowed yet"):
        pipelines.run(retrain)
    (tmp_path / "allowed").touch()
    run = pipelines.resume("last", retrain)

    names = [step.name for step in run.steps]
    assert names == ["data.write", "add", "experiment.launch", "add", "models.register", "until_allowed"]
    assert run.result["model"].reference == "double:1"
    assert [step.result.thing for step in run.steps if step.result and step.result.thing][-1] == ("model", "double:1")
    assert len(models.list("double")) == len(experiment.list()) == data.open("numbers").version == 1


def test_a_call_that_raised_raises_the_same_again_on_resume(tmp_path: Path) -> None:
    def retrain() -> Any:
        model = models.register("double", double, metrics={"score": 0.5})
        try:
            model.promote("champion", when="score >= 0.9")
        except GateError as error:
            return steps.until_allowed(str(tmp_path), error.figures)

    with pytest.raises(StepFailedError, match="not allowed yet"):
        pipelines.run(retrain)
    (tmp_path / "allowed").touch()
    run = pipelines.resume("last", retrain)

    assert run.result == {"score": 0.5}
    assert [step.state for step in run.steps] == [StepState.COMPLETED, StepState.REFUSED, StepState.COMPLETED]


def test_a_call_whose_driver_died_is_found_again() -> None:
    def retrain() -> Any:
        return models.register("double", double).reference

    journal = pipelines.run(retrain, run_id="mine").record.folder.journal
    lines = journal.read_bytes().splitlines(keepends=True)
    assert b'"step-started"' in lines[2]
    journal.write_bytes(b"".join(lines[:3]))

    run = pipelines.resume("mine", retrain)

    assert (run.result, len(models.list("double"))) == ("double:1", 1)
