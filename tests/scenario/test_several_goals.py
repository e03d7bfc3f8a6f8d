"""Searches after more than one number."""

from __future__ import annotations

import pytest

from cargobike import Searchspace, experiment
from cargobike.core.errors import ExperimentFailedError, InvalidInputError
from cargobike.core.records import Direction

SPACE = Searchspace(x=("DOUBLE", [0, 1]))


def train(x: float) -> dict[str, float]:
    return {"accuracy": x, "latency_ms": 100 * (x - 0.5) ** 2 + 10}


def test_several_objectives_give_a_front_instead_of_a_best(capsys: pytest.CaptureFixture[str]) -> None:
    points = [{"x": x} for x in (0.2, 0.4, 0.9, 0.5, 0.7)]
    directions: dict[str, Direction] = {"accuracy": "max", "latency_ms": "min"}
    result = experiment.launch(train, points, direction=directions)
    assert result.best is None
    assert "3 best compromises: accuracy 0.9, latency_ms 26 in trial 2; " in capsys.readouterr().err.splitlines()[-1]
    assert [trial.params["x"] for trial in result.pareto_front] == [0.9, 0.5, 0.7]
    assert [trial.number for trial in experiment.load(result.id).pareto_front] == [2, 3, 4]


def test_a_trial_that_breaks_a_limit_never_wins(capsys: pytest.CaptureFixture[str]) -> None:
    points = [{"x": 0.95}, {"x": 0.7}, {"x": 0.6}]
    result = experiment.launch(
        train,
        SPACE,
        num_trials=3,
        metric="accuracy",
        constraints=["latency_ms <= 15"],
        start_points=points,
    )
    assert [trial.params for trial in result.trials] == points
    assert result.best is not None
    assert result.best.params == {"x": 0.7}
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"best accuracy 0.7 (max) in trial {result.best.number} " in last
    assert experiment.load(result.id).best == result.best


def test_a_misspelled_metric_in_a_limit_is_named() -> None:
    with pytest.raises(ExperimentFailedError, match="Did you mean 'latency_ms'"):
        experiment.launch(train, SPACE, num_trials=3, metric="accuracy", constraints=["latency <= 15"], quiet=True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"direction": {"accuracy": "max"}}, "at least two"),
        ({"direction": {"accuracy": "max", "latency_ms": "least"}}, "allowed are 'max' and 'min'"),
        ({"direction": {"accuracy": "max", "latency_ms": "min"}, "metric": "accuracy"}, "leave it out"),
        ({"direction": {"accuracy": "max", "latency_ms": "min"}, "optimizer": "asha"}, "searches for one number"),
        ({"direction": {"accuracy": "max", "latency_ms": "min"}, "early_stop": "median"}, "one number"),
        ({"constraints": ["latency_ms < 3"]}, "metric <= number"),
        ({"start_points": [{"y": 1}]}, "do not lie in the space"),
    ],
)
def test_goals_that_cannot_be_had_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        experiment.launch(train, SPACE, num_trials=3, quiet=True, **given)  # type: ignore[arg-type]
