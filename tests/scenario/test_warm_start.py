"""Searches that begin with what earlier ones found."""

from __future__ import annotations

import pytest

from cargobike import Searchspace, experiment, trial
from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Direction
from cargobike.search.optimizers.tpe import TPE

SPACE = Searchspace(x=("DOUBLE", [0, 10]), y=("INTEGER", [0, 9]))


def train(x: float, y: int) -> float:
    return -((x - 3) ** 2) - (y - 4) ** 2


def train_dict(x: float, y: int) -> dict[str, float]:
    return {"accuracy": -((x - 3) ** 2), "latency_ms": (y - 4) ** 2 + x}


def train_with_reports(x: float, y: int) -> float:
    for step in range(9):
        trial.report(score=train(x, y) / (step + 1), step=step)
    return train(x, y)


def test_the_best_points_come_first_and_the_model_knows_the_rest() -> None:
    first = experiment.launch(train, SPACE, optimizer="random", num_trials=12, workers=1, seed=1, quiet=True)
    assert first.best is not None
    second = experiment.launch(
        train, SPACE, optimizer=TPE(startup=8), num_trials=20, workers=1, seed=2, warm_start=first.id, quiet=True
    )
    ranked = sorted(first.trials, key=lambda one: -(one.value or 0.0))
    assert [one.params for one in second.trials[:2]] == [one.params for one in ranked[:2]]
    assert {one.info["by"] for one in second.trials} == {"model"}, "eight trials were known from the start"
    assert second.best is not None
    assert (second.best.value or 0.0) >= (first.best.value or 0.0)


@pytest.mark.parametrize("optimizer", ["auto", "asha", "bohb", "dehb", "de", "random", "sobol", "hyperband", "pbt"])
def test_every_optimizer_can_begin_warm_and_be_resumed(optimizer: str) -> None:
    first = experiment.launch(train_with_reports, SPACE, optimizer="asha", num_trials=9, seed=1, quiet=True)
    assert first.best is not None
    second = experiment.launch(
        train_with_reports, SPACE, optimizer=optimizer, num_trials=8, seed=2, warm_start="last", quiet=True
    )
    assert second.trials[0].params == first.best.params
    if optimizer == "pbt":
        return  # its trials are all there: a population does not grow
    third = experiment.resume(second.id, num_trials=11, quiet=True)
    assert [one.params for one in third.trials[:8]] == [one.params for one in second.trials]
    assert len(third.trials) == 11


def test_several_experiments_another_metric_and_a_smaller_space_fit_together() -> None:
    wide = Searchspace(x=("DOUBLE", [0, 10]), y=("INTEGER", [0, 9]))
    ids = [
        experiment.launch(train_dict, wide, num_trials=6, metric="accuracy", seed=seed, quiet=True).id
        for seed in (1, 2)
    ]
    narrow = Searchspace(x=("DOUBLE", [0, 9.9]), y=("INTEGER", [0, 9]))
    goals: dict[str, Direction] = {"accuracy": "max", "latency_ms": "min"}
    result = experiment.launch(
        train_dict, narrow, optimizer="tpe", num_trials=10, direction=goals, warm_start=ids, quiet=True
    )
    earlier = [one.params for id in ids for one in experiment.load(id).trials]
    assert result.trials[0].params in earlier


def test_what_cannot_be_learned_from_is_refused() -> None:
    first = experiment.launch(train, SPACE, num_trials=2, name="the first", quiet=True)
    with pytest.raises(InvalidInputError, match=r"direction='max', this one is 'min'"):
        experiment.launch(train, SPACE, num_trials=2, direction="min", warm_start=first.id, quiet=True)
    far = Searchspace(x=("DOUBLE", [20, 30]), y=("INTEGER", [0, 9]))
    with pytest.raises(InvalidInputError, match=r"no completed trial that lies in this space \(x, y\)"):
        experiment.launch(train, far, num_trials=2, warm_start="the first", quiet=True)
    with pytest.raises(InvalidInputError, match="all trials are listed already"):
        experiment.launch(train, {"x": [1, 2], "y": [3]}, warm_start=first.id, quiet=True)
    with pytest.raises(LookupError, match="nowhere"):
        experiment.launch(train, SPACE, num_trials=2, warm_start="nowhere", quiet=True)
