"""Maggy's searches: all spellings of the call, of the train function and of the result."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cargobike import Searchspace as OwnSpace
from cargobike import experiment as own
from cargobike.compat.maggy import Searchspace, experiment
from cargobike.compat.maggy.config import BaseConfig, HyperparameterOptConfig
from cargobike.compat.maggy.core.exceptions import BroadcastMetricTypeError, BroadcastStepValueError
from cargobike.compat.maggy.core.reporter import Reporter
from cargobike.compat.maggy.experiment_config import OptimizationConfig
from cargobike.compat.maggy.optimizer import Asha, RandomSearch
from cargobike.compat.maggy.optimizer.bayes import TPE
from cargobike.compat.maggy.trial import Trial
from cargobike.core import settings
from cargobike.core.errors import ExperimentFailedError

HERE: dict[str, Any] = {"workers": 0, "quiet": True, "seed": 3}


def line() -> Searchspace:
    return Searchspace(x=("DOUBLE", [1, 5]), n=("INTEGER", [1, 3]))


def by_name(x: float, n: int, reporter: Any) -> float:
    reporter.broadcast(metric=x, step=0)
    reporter.log(f"trial {reporter.get_trial_id()}")
    return x * n


def test_launch_of_0_1_returns_its_keys_and_the_later_ones() -> None:
    sp = line()
    result = experiment.launch(by_name, sp, "randomsearch", "min", 5, "test", **HERE)
    values = result["metric_list"]
    assert type(result) is dict
    assert len(values) == result["num_trials"] == 5
    assert (result["best_val"], result["worst_val"]) == (min(values), max(values))
    assert (result["min_val"], result["max_val"]) == (min(values), max(values))
    assert result["best_hp"] == result["best_config"] == result["min_hp"]
    assert result["best_id"] == Trial(result["best_hp"]).trial_id
    assert result["avg"] == pytest.approx(sum(values) / 5)
    assert result["early_stopped"] == 0
    kept = own.load(result["experiment_id"])
    assert kept.best is not None
    assert kept.best.params == result["best_config"]
    assert f"trial {result['best_id']}" in kept.best.logs
    assert (kept.name, kept.direction) == ("test", "min")


@pytest.mark.parametrize("direction", ["max", "MIN"])
def test_lagom_of_0_2_to_0_5_takes_keywords(direction: str) -> None:
    result = experiment.lagom(
        map_fun=by_name,
        name="by keywords",
        experiment_type="optimization",
        searchspace=line(),
        optimizer="randomsearch",
        direction=direction,
        num_trials=4,
        hb_interval=5,
        es_policy="none",
        **HERE,
    )
    choose = max if direction == "max" else min
    assert result["best_val"] == choose(result["metric_list"])
    assert own.load("last").name == "by keywords"


def test_lagom_of_1_0_calls_a_function_by_the_names_of_the_space() -> None:
    config = OptimizationConfig(3, RandomSearch(), line(), optimization_key="acc", name="one")

    def train(x: float, n: int) -> dict[str, float]:
        return {"loss": -x, "acc": x + n}

    result = experiment.lagom(train, config, **HERE)
    assert result["best_val"] == max(result["metric_list"])
    best = own.load("last").best
    assert best is not None
    assert best.metrics["loss"] == -result["best_config"]["x"]


def test_lagom_of_1_1_gives_the_objects_of_the_configuration() -> None:
    def train(model: Any, dataset: Any, hparams: dict[str, Any], reporter: Any) -> float:
        assert model is dict
        assert dataset == ["train", "test"]
        assert sorted(hparams) == ["n", "x"]
        reporter.broadcast(hparams["x"])
        return float(hparams["x"])

    config = HyperparameterOptConfig(
        num_trials=2, optimizer="randomsearch", searchspace=line(), model=dict, dataset=["train", "test"]
    )
    result = experiment.lagom(train_fn=train, config=config, **HERE)
    assert result["best_val"] == result["best_config"]["x"]


def test_the_documents_of_1_1_give_train_set_and_test_set() -> None:
    def train(model: Any, train_set: Any, test_set: Any, hparams: dict[str, Any]) -> float:
        assert (model, train_set, test_set) == (None, [1], [2])
        return float(hparams["n"])

    config = HyperparameterOptConfig(2, "randomsearch", line(), train_set=[1], test_set=[2])
    assert experiment.lagom(train, config, **HERE)["num_trials"] == 2


def test_a_parameter_of_the_space_may_be_called_as_an_object_of_1_1() -> None:
    def train(model: str) -> int:
        return len(model)

    sp = Searchspace(model=("CATEGORICAL", ["net", "forest"]))
    result = experiment.lagom(train, searchspace=sp, optimizer="gridsearch", **HERE)
    assert (result["best_hp"], result["num_trials"]) == ({"model": "forest"}, 2)


def test_a_name_that_does_not_fit_is_told_before_anything_starts() -> None:
    def train(lr: float, n: int) -> float:
        return lr * n

    with pytest.raises(TypeError, match="'x' is given, but the function has no such parameter"):
        experiment.launch(train, line(), "randomsearch", "max", 2, "wrong", **HERE)
    assert own.list() == []


@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (0, 0.0),
        ({"metric": 0.0, "other": 5}, 0.0),
        ({"Metric": 2}, 2.0),
        ([0.25, 0.9], 0.25),
        ({"loss": 0.5, "acc": 1.0}, 0.5),
        ({"path": "m.pt", "acc": 0}, 0.0),
    ],
)
def test_what_a_function_returns_is_read_as_maggy_did_and_0_is_a_metric(returned: Any, value: float) -> None:
    result = experiment.lagom(lambda: returned, BaseConfig(), **HERE)
    assert result["best_val"] == value
    assert result["test result"]["metric"] == [value]
    if isinstance(returned, dict) and "loss" in returned:
        assert result["test result"] == {"metric": [0.5], "loss": [0.5], "acc": [1.0]}


def test_without_a_space_a_function_is_run_as_often_as_asked() -> None:
    result = experiment.lagom(lambda: 0, name="three", num_trials=3, **HERE)
    assert (result["metric_list"], result["num_trials"]) == ([0.0, 0.0, 0.0], 3)


@pytest.mark.parametrize("direction", ["max", "min"])
def test_asha_promotes_the_best_in_both_directions(direction: str) -> None:
    budgets: list[tuple[int, float]] = []

    def train(x: float, budget: int) -> float:
        budgets.append((budget, x))
        return x

    sp = Searchspace(x=("DOUBLE", [0.0, 1.0]))
    config = OptimizationConfig(14, Asha(2, 1, 4), sp, direction=direction)
    result = experiment.lagom(train, config, **HERE)
    low = [x for budget, x in budgets if budget == 1]
    top = [x for budget, x in budgets if budget == 4]
    assert (len(low), len(top), result["num_trials"]) == (8, 2, 14)
    assert result["best_config"]["x"] in top
    assert (max if direction == "max" else min)(low) in top


def test_asha_without_a_budget_looks_at_what_is_broadcast() -> None:
    def train(x: float, reporter: Any) -> float:
        for epoch in range(4):
            reporter.broadcast(x, epoch)
        return x

    sp = Searchspace(x=("DOUBLE", [0.0, 1.0]))
    result = experiment.lagom(train, OptimizationConfig(8, "asha", sp), **HERE)
    assert result["early_stopped"] > 0
    assert result["best_val"] == max(result["metric_list"])


@pytest.mark.parametrize("kind", [RandomSearch, TPE])
def test_the_hyperband_pruner_gives_budgets(kind: Any) -> None:
    seen: list[int] = []

    def train(hparams: dict[str, Any]) -> float:
        seen.append(hparams["budget"])
        return float(hparams["x"])

    pruner = {"min_budget": 1, "max_budget": 9, "eta": 3, "n_iterations": 2}
    optimizer = kind(pruner="hyperband", pruner_kwargs=pruner)
    assert optimizer.pruner.num_trials() == 17
    sp = Searchspace(x=("DOUBLE", [0.0, 1.0]))
    result = experiment.lagom(train, HyperparameterOptConfig(1, optimizer, sp), **HERE)
    assert result["num_trials"] == 17
    assert (seen.count(1), seen.count(3), seen.count(9)) == (9, 6, 2)


def test_the_optimizers_of_maggy_by_name() -> None:
    sp = Searchspace(x=("DISCRETE", [1, 2]), act=("CATEGORICAL", ["a", "b"]))

    def train(x: int, act: str) -> float:
        return x + (act == "b")

    for name, count in (("gridsearch", 4), ("randomsearch", 3), ("tpe", 3)):
        result = experiment.lagom(train, OptimizationConfig(3, name, sp), **HERE)
        assert result["num_trials"] == count
    with pytest.raises(ValueError, match="randomserch"):
        experiment.lagom(train, OptimizationConfig(3, "randomserch", sp), **HERE)
    with pytest.raises(TypeError, match="empty or None"):
        experiment.lagom(train, OptimizationConfig(3, "none", sp), **HERE)
    with pytest.raises(TypeError, match=r"maggy\.optimizer\.AbstractOptimizer"):
        experiment.lagom(train, OptimizationConfig(3, 5, sp), **HERE)


def test_other_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="greater than zero"):
        OptimizationConfig(0, "randomsearch", line())
    with pytest.raises(TypeError, match="give a configuration"):
        experiment.lagom(by_name, {"num_trials": 3}, **HERE)
    with pytest.raises(RuntimeError, match="Did you mean 'optimization'"):
        experiment.lagom(by_name, experiment_type="optimisation", **HERE)
    with pytest.raises(ValueError, match="direction='up'"):
        experiment.launch(by_name, line(), "randomsearch", "up", 2, "", **HERE)
    with pytest.raises(TypeError, match="needs a train function"):
        experiment.lagom()


def test_a_function_that_fails_is_a_failed_trial_and_not_the_end() -> None:
    def train(x: float, n: int) -> float:
        if n == 1:
            raise ValueError("n must not be 1")
        return x

    result = experiment.launch(train, line(), "randomsearch", "max", 12, "", **HERE)
    assert result["failed"] > 0
    assert result["failed"] + len(result["metric_list"]) == result["num_trials"] == 12


def test_steps_rise_and_metrics_are_numbers() -> None:
    reporter = Reporter()
    reporter.broadcast(0.5)
    reporter.broadcast(0.6, 4)
    reporter.broadcast(0.7, 4)
    reporter.broadcast(0.8)
    assert reporter.step == 5
    with pytest.raises(BroadcastStepValueError, match="in step 3, after step 5"):
        reporter.broadcast(0.5, 3)
    with pytest.raises(BroadcastMetricTypeError, match="a number"):
        reporter.broadcast("good")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="whole number"):
        reporter.broadcast(0.5, "six")  # type: ignore[arg-type]


def test_a_space_of_ours_will_do() -> None:
    sp = OwnSpace(x=("DOUBLE", [1e-4, 1e-1], "log"), n=["a", "b"])
    named = Searchspace.of(sp)
    assert named.names() == {"x": "DOUBLE", "n": "CATEGORICAL"}
    assert named.as_space() == sp
    result = experiment.lagom(lambda x, n: x, OptimizationConfig(3, "randomsearch", sp), **HERE)
    assert 1e-4 <= result["best_config"]["x"] <= 1e-1


def test_an_environment_variable_says_where_scripts_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "0")
    calls: list[float] = []

    def train(x: float) -> float:
        calls.append(x)
        return x

    experiment.launch(train, Searchspace(x=("DOUBLE", [0, 1])), "randomsearch", "max", 2, "", quiet=True)
    assert len(calls) == 2
    assert all(math.isfinite(x) for x in calls)
    monkeypatch.setenv(settings.COMPAT_ENGINE, "nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        experiment.launch(by_name, line(), "randomsearch", "max", 2, "", workers=1)
    monkeypatch.setenv(settings.COMPAT_WORKERS, "many")
    with pytest.raises(ValueError, match="CARGOBIKE_COMPAT_WORKERS='many'"):
        experiment.launch(by_name, line(), "randomsearch", "max", 2, "")


def test_a_search_of_which_every_trial_fails_says_so() -> None:
    def train(x: float, n: int) -> float:
        raise ValueError("never")

    with pytest.raises(ExperimentFailedError, match="never"):
        experiment.launch(train, line(), "randomsearch", "max", 2, "", **HERE)
