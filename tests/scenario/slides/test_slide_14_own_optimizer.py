"""Slide 14: an optimizer of one's own with the four methods that the slide shows, early_check among them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cargobike import experiment as own
from cargobike.compat.maggy import Searchspace, Trial, experiment
from cargobike.compat.maggy.optimizer import AbstractOptimizer


class RandomSearch(AbstractOptimizer):
    def initialize(self) -> None:
        self.buffer = [Trial(params) for params in self.searchspace.get_random_parameter_values(self.num_trials)]

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        return self.buffer.pop() if self.buffer else None

    def finalize_experiment(self, trials: list[Trial]) -> None:
        self.finalized = len(trials)

    def early_check(self, to_check: list[Trial], trials: list[Trial], direction: str) -> list[str]:
        limit = 2.0 if direction == "max" else 4.0
        bad = [one for one in to_check if (one.metric_history[-1] < limit) == (direction == "max")]
        return [one.trial_id for one in bad]


def train_fn(argument_param: float, reporter: Any) -> float:
    for step in range(3):
        reporter.broadcast(argument_param, step)
    return argument_param


@pytest.mark.parametrize(("direction", "workers"), [("max", 0), ("min", 2)])
def test_the_four_methods_are_called(direction: str, workers: int) -> None:
    random.seed(1)
    sp = Searchspace(argument_param=("DOUBLE", [1, 5]))
    rs = RandomSearch(12, sp)
    result = experiment.launch(
        train_fn,
        sp,
        optimizer=rs,
        num_trials=12,
        name="test",
        direction=direction,
        workers=workers,
        engine="local",
        quiet=True,
    )
    stopped = [trial.params["argument_param"] for trial in own.load("last").of_state("stopped")]
    assert (result["num_trials"], rs.finalized) == (12, 12)
    assert all(value < 2 if direction == "max" else value >= 4 for value in stopped)
    assert all(value >= 2 if direction == "max" else value < 4 for value in result["metric_list"])
    assert len(stopped) + len(result["metric_list"]) == 12
