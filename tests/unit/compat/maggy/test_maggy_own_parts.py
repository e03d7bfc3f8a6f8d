"""Optimizers and early-stop policies that users wrote for Maggy, run by our driver."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike import experiment as own
from cargobike.compat.maggy import Searchspace, Trial, experiment
from cargobike.compat.maggy.config import HyperparameterOptConfig
from cargobike.compat.maggy.core.exceptions import EarlyStopException
from cargobike.compat.maggy.earlystop import AbstractEarlyStop, MedianStoppingRule, NoStoppingRule
from cargobike.compat.maggy.experiment_config import OptimizationConfig
from cargobike.compat.maggy.optimizer import AbstractOptimizer, RandomSearch
from cargobike.core.errors import ExperimentFailedError

HERE: dict[str, Any] = {"workers": 0, "quiet": True, "seed": 3}


def space() -> Searchspace:
    return Searchspace(x=("DOUBLE", [0.0, 1.0]))


class Halving(AbstractOptimizer):
    """Waits for four short trainings, and gives the better half a longer one."""

    def initialize(self) -> None:
        self.waiting = self.searchspace.get_random_parameter_values(4)
        self.handed: list[str] = []
        self.idled = 0
        self.longer: list[dict[str, Any]] | None = None

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        if trial is not None:
            assert trial.status == Trial.FINALIZED
            assert trial in self.final_store
            self.handed.append(trial.trial_id)
        if self.waiting:
            return self.create_trial(self.waiting.pop(), "random", run_budget=1)
        if len(self.final_store) < 4:
            self.idled += 1
            return "IDLE"
        if self.longer is None:
            order = sorted(self.final_store, key=lambda one: one.final_metric or 0.0, reverse=self.direction == "max")
            self.longer = [dict(one.params) for one in order[:2]]
        if self.longer:
            return self.create_trial(self.longer.pop(0), "promoted", run_budget=9)
        return None

    def finalize_experiment(self, trials: list[Trial]) -> None:
        self.looked_back = [trial.params["budget"] for trial in trials]


@pytest.mark.parametrize("direction", ["max", "min"])
def test_an_optimizer_of_the_users_own_is_run_by_our_driver(direction: str) -> None:
    optimizer = Halving()

    def train(x: float, budget: int, reporter: Any) -> float:
        for step in range(budget):
            reporter.broadcast(x, step)
        return x

    config = OptimizationConfig(20, optimizer, space(), direction=direction, es_policy="none")
    result = experiment.lagom(train, config, **HERE)
    assert result["num_trials"] == 6
    assert optimizer.looked_back == [1, 1, 1, 1, 9, 9]
    assert len(set(optimizer.handed)) == len(optimizer.handed) >= 4
    assert optimizer.trial_store == {}
    assert [len(one.metric_history) for one in optimizer.final_store] == [1, 1, 1, 1, 9, 9]
    short = sorted((one.final_metric for one in optimizer.final_store[:4]), reverse=direction == "max")  # type: ignore[type-var]
    assert sorted(one.final_metric for one in optimizer.final_store[4:]) == sorted(short[:2])  # type: ignore[type-var]
    assert optimizer.ybest() == min(optimizer.get_metrics_dict().values())


def test_an_optimizer_that_draws_from_the_space_can_be_resumed() -> None:
    config = OptimizationConfig(3, Drawing(), space())
    first = experiment.lagom(lambda x: x, config, **HERE)
    result = own.resume(first["experiment_id"], num_trials=5, workers=0, quiet=True)
    values = [trial.value for trial in result.trials]
    assert (len(values), len(set(values)), values[:3]) == (5, 5, first["metric_list"])
    again = experiment.lagom(lambda x: x, OptimizationConfig(3, Drawing(), space()), **HERE)
    assert again["metric_list"] == first["metric_list"]


class Drawing(AbstractOptimizer):
    def initialize(self) -> None:
        pass

    def get_suggestion(self, trial: Trial | None = None) -> Trial:
        return self.create_trial(self.searchspace.get_random_parameter_values(1)[0], "random")

    def finalize_experiment(self, trials: list[Trial]) -> None:
        pass


def test_an_optimizer_that_never_ends_gets_as_many_trials_as_were_asked_for() -> None:
    class Endless(AbstractOptimizer):
        def initialize(self) -> None:
            pass

        def get_suggestion(self, trial: Trial | None = None) -> Trial:
            return Trial(self.searchspace.get_random_parameter_values(1)[0])

        def finalize_experiment(self, trials: list[Trial]) -> None:
            pass

    result = experiment.lagom(lambda x: x, OptimizationConfig(4, Endless(), space()), **HERE)
    assert result["num_trials"] == 4


def test_a_trial_that_fails_leaves_the_store() -> None:
    class Watching(RandomSearch):
        def finalize_experiment(self, trials: list[Trial]) -> None:
            self.statuses = sorted(trial.status for trial in trials)

    optimizer = Watching()

    def train(x: float) -> float:
        if x > 0.5:
            raise ValueError("too large")
        return x

    result = experiment.lagom(train, OptimizationConfig(8, optimizer, space()), **HERE)
    assert result["failed"] == optimizer.statuses.count(Trial.ERROR) > 0
    assert optimizer.trial_store == {}
    assert all(trial.status == Trial.FINALIZED for trial in optimizer.final_store)


def test_an_optimizer_that_returns_something_else_is_told_what_is_allowed() -> None:
    class Wrong(RandomSearch):
        def get_suggestion(self, trial: object = None) -> object:
            return 5

    with pytest.raises(ExperimentFailedError, match=r"allowed are a maggy\.trial\.Trial"):
        experiment.lagom(lambda x: x, OptimizationConfig(4, Wrong(), space()), **HERE)


def falling(x: float, reporter: Any) -> float:
    for step in range(1, 5):
        reporter.broadcast(x, step)
    return x


class BelowHalf(AbstractEarlyStop):
    asked: list[tuple[str, int, str]] = []  # noqa: RUF012 - the test reads it

    @staticmethod
    def earlystop_check(to_check: Trial, finalized_trials: list[Trial], direction: str) -> str | None:
        BelowHalf.asked.append((to_check.trial_id, to_check.step_history[-1], direction))
        assert len(finalized_trials) > 2
        return to_check.trial_id if to_check.metric_history[-1] < 0.5 else None


class BelowHalfOf01(AbstractEarlyStop):
    @staticmethod
    def earlystop_check(to_check: Any, finalized_trials: list[Trial], direction: str) -> list[str]:
        return [trial_id for trial_id, trial in to_check.items() if trial.metric_history[-1] < 0.5]


@pytest.mark.parametrize("policy", [BelowHalf, BelowHalf(), BelowHalfOf01()])
def test_policies_of_both_signatures_stop_trials(policy: Any) -> None:
    BelowHalf.asked = []
    config = HyperparameterOptConfig(
        12, "randomsearch", space(), es_policy=policy, es_min=2, es_interval=2, optimization_key="metric"
    )
    result = experiment.lagom(falling, config, **HERE)
    kept = own.load("last")
    stopped = kept.of_state("stopped")
    assert result["early_stopped"] == len(stopped) > 0
    assert all(trial.params["x"] < 0.5 and len(trial.curve) == 2 for trial in stopped)
    assert all(trial.params["x"] >= 0.5 for trial in kept.of_state("completed")[3:])
    assert {step for _, step, _ in BelowHalf.asked} <= {2, 4}
    assert result["best_val"] == max(result["metric_list"])


@pytest.mark.parametrize(("direction", "x", "stops"), [("max", 0.1, True), ("max", 0.9, False), ("min", 0.9, True)])
def test_the_median_rule_compares_with_the_averages_of_finished_trials(direction: str, x: float, stops: bool) -> None:
    def trial(*values: float) -> Trial:
        made = Trial({"v": values})
        made.metric_history = list(values)
        return made

    finished = [trial(0.3, 0.5, 0.7), trial(0.6, 0.4), trial(0.5)]
    checked = trial(x, x)
    answer = MedianStoppingRule.earlystop_check(checked, finished, direction)
    assert answer == (checked.trial_id if stops else None)
    assert MedianStoppingRule.earlystop_check(trial(), finished, direction) is None
    assert MedianStoppingRule.earlystop_check(trial(1, 2, 3, 4), finished, direction) is None


@pytest.mark.parametrize("direction", ["max", "min"])
def test_median_stops_the_worse_in_both_directions(direction: str) -> None:
    config = OptimizationConfig(16, "randomsearch", space(), direction=direction, es_min=4)
    result = experiment.lagom(falling, config, **HERE)
    stopped = [trial.params["x"] for trial in own.load("last").of_state("stopped")]
    assert result["early_stopped"] == len(stopped) > 0
    mean = sum(stopped) / len(stopped)
    assert mean < 0.5 if direction == "max" else mean > 0.5
    assert result["num_trials"] == 16


def test_a_stop_arrives_as_maggys_exception() -> None:
    caught: list[Any] = []

    def train(x: float, reporter: Any) -> float:
        try:
            return falling(x, reporter)
        except EarlyStopException as stop:
            caught.append(stop.metric)
            raise

    result = experiment.lagom(train, OptimizationConfig(16, "randomsearch", space(), es_min=4), **HERE)
    assert len(caught) == result["early_stopped"] > 0


def test_no_policy_stops_nothing() -> None:
    for policy in ("none", NoStoppingRule, None):
        config = OptimizationConfig(14, "randomsearch", space(), es_policy=policy, es_min=2)
        assert experiment.lagom(falling, config, **HERE)["early_stopped"] == 0
    with pytest.raises(TypeError, match="'median', 'none'"):
        experiment.lagom(falling, OptimizationConfig(14, "randomsearch", space(), es_policy="mean"), **HERE)
