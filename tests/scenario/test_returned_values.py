"""What a train function may return, and what happens when it returns something else."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from cargobike import experiment
from cargobike.cli.app import app
from cargobike.core.errors import ExperimentFailedError, TrialFailedError


def test_a_dict_needs_a_choice_and_keeps_everything() -> None:
    def train(x: int) -> dict[str, float]:
        return {"loss": 1 / x, "accuracy": float(x)}

    result = experiment.launch(train, {"x": [1, 2, 4]}, metric="loss", direction="min", quiet=True)
    assert result.best is not None
    assert (result.best.metric, result.best.metrics) == (0.25, {"loss": 0.25, "accuracy": 4.0})
    assert experiment.load(result.id).trials[0].metrics == {"loss": 1.0, "accuracy": 1.0}
    with pytest.raises(ExperimentFailedError, match="metric='loss'"):
        experiment.launch(train, {"x": [1]}, quiet=True)
    with pytest.raises(ExperimentFailedError, match="Did you mean 'accuracy'"):
        experiment.launch(train, {"x": [1]}, metric="acuracy", quiet=True)


@pytest.mark.parametrize("direction", ["max", "min"])
def test_nan_and_infinities_are_recorded_and_never_win(direction: Any) -> None:
    def train(x: str) -> float:
        return float(x)

    result = experiment.launch(train, {"x": ["nan", "inf", "1.5", "-inf", "-nan"]}, direction=direction, quiet=True)
    assert [repr(trial.value) for trial in result.trials] == ["nan", "inf", "1.5", "-inf", "nan"]
    assert {trial.state for trial in result.trials} == {"completed"}
    assert result.best is not None
    assert result.best.params == {"x": "1.5"}
    again = experiment.load(result.id)
    assert [repr(trial.value) for trial in again.trials] == [repr(trial.value) for trial in result.trials]
    assert again.best == result.best


def test_without_a_finite_value_there_is_no_best() -> None:
    result = experiment.launch(lambda x: math.nan, {"x": [1, 2]}, quiet=True)
    assert result.best is None
    assert result.counts == {"completed": 2}


def test_anything_else_fails_that_trial_and_the_search_goes_on() -> None:
    def train(kind: str) -> Any:
        def generate() -> Iterator[int]:
            yield 1

        async def coroutine() -> int:
            return 1

        async def stream() -> AsyncIterator[int]:
            yield 1

        makers: dict[str, Any] = {
            "fine": lambda: 1.0,
            "None": lambda: None,
            "text": lambda: "0.9",
            "list": lambda: [0.1, 0.2],
            "generator": generate,
            "coroutine": coroutine,
            "stream": stream,
            "truth": lambda: True,
            "empty": dict,
            "complex": lambda: 1j,
            "object": object,
            "names": lambda: {1: 2.0},
        }
        return makers[kind]()

    expected = {
        "None": "without `return`",
        "text": r"float\(",
        "list": "Name the numbers",
        "generator": "`return` instead of `yield`",
        "coroutine": "asyncio.run",
        "stream": "plain `def`",
        "truth": "truth value",
        "empty": "empty dict",
        "complex": "abs",
        "object": "not a score",
        "names": "no text",
    }
    result = experiment.launch(train, {"kind": ["fine", *expected]}, workers=1, quiet=True)
    assert result.counts == {"completed": 1, "failed": len(expected)}
    assert result.best is not None
    assert result.best.params == {"kind": "fine"}
    for trial in result.failures:
        with pytest.raises(ValueError, match=expected[trial.params["kind"]]):
            raise ValueError(trial.error)
        assert "cargobike" not in (trial.error or "")


def test_a_single_run_may_return_nothing() -> None:
    result = experiment.launch(lambda x: None, params={"x": 1}, quiet=True)
    assert (result.value, result.best, result.counts) == (None, None, {"completed": 1})
    several = experiment.launch(lambda: {"a": 1, "b": 2}, params={}, quiet=True)
    assert several.value == several.trials[0].metrics == {"a": 1.0, "b": 2.0}
    assert experiment.launch(lambda x: x, params={"x": 5}, quiet=True).value == 5.0


def test_a_single_run_that_returns_no_score_has_failed_if_one_was_asked_for() -> None:
    with pytest.raises(TrialFailedError, match="not a score"):
        experiment.launch(lambda x: "good", params={"x": 1}, metric="accuracy", quiet=True)


def test_what_is_no_number_is_kept_and_shown(caplog: pytest.LogCaptureFixture) -> None:
    def train(x: int) -> dict[str, Any]:
        return {"acc": x / 4, "model_path": f"m{x}.pt", "best_epoch": None}

    result = experiment.launch(train, {"x": [1, 2]}, metric="acc", workers=1, quiet=True)
    assert result.best is not None
    assert (result.best.value, result.best.metrics) == (0.5, {"acc": 0.5})
    assert result.best.extras == {"model_path": "m2.pt", "best_epoch": None}
    assert experiment.load(result.id).trials == result.trials
    assert result.to_pandas()["extras.model_path"].tolist() == ["m1.pt", "m2.pt"]
    assert [record.message for record in caplog.records if "kept as information" in record.message] == [
        "trial 0 returned more than numbers: 'model_path', 'best_epoch'. That is kept as information (trial.extras), "
        "not as a metric."
    ]
    shown = CliRunner().invoke(app, ["show", result.id])
    assert "0001 also returned model_path=m2.pt" in shown.stdout
    trials = json.loads(CliRunner().invoke(app, ["show", result.id, "--json"]).stdout)["trial_list"]
    assert trials[0]["extras"] == {"model_path": "m2.pt", "best_epoch": None}
