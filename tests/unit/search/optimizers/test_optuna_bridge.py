"""Optuna's samplers see our trials, and we see their suggestions."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Suggestion, Trial, TrialState
from cargobike.search.optimizers.optuna_bridge import CMAES, NSGA2, GaussianProcess, OptunaOptimizer
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.registry import resolve_optimizer
from cargobike.search.spaces.space import Searchspace
from support.functions import BRANCHES, PLANE, branches, branin, minimize, typical_best

optuna = pytest.importorskip("optuna")
EVERYTHING = Searchspace(
    rate=("DOUBLE", [1e-4, 1e-1], "log"),
    momentum=("DOUBLE", [0.5, 0.99], "reverse-log"),
    layers=("INTEGER", [1, 4]),
    units=("INTEGER", [8, 512], "log"),
    dropout=("DOUBLE", [0.0, 0.5], {"step": 0.1}),
    batch=("DISCRETE", [128, 32, 64]),
    act=("CATEGORICAL", ["relu", "gelu", None, (1, 2)]),
)


def tpe(seed: int) -> Any:
    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=5)


def ready(optimizer: OptunaOptimizer, space: Searchspace = PLANE, **more: Any) -> OptunaOptimizer:
    optimizer.setup(space, num_trials=None, direction=more.pop("direction", "min"), seed=3)
    for name, value in more.items():
        setattr(optimizer, name, value)
    optimizer.initialize()
    return optimizer


def ask(optimizer: OptunaOptimizer) -> Trial:
    answer = optimizer.get_suggestion()
    assert isinstance(answer, Suggestion)
    trial = Trial(answer.params, number=len(optimizer.trials), info=answer.info)
    optimizer.trials[trial.number] = trial
    return trial


def end(optimizer: OptunaOptimizer, trial: Trial, value: float | None = None, **more: Any) -> None:
    state = more.pop("state", TrialState.COMPLETED)
    optimizer.observe(Trial(trial.params, number=trial.number, info=trial.info, state=state, value=value, **more))


def studied(optimizer: OptunaOptimizer) -> list[str]:
    return [trial.state.name for trial in optimizer._study.get_trials(deepcopy=False)]


def test_any_sampler_searches_better_than_chance() -> None:
    ours = typical_best(lambda: OptunaOptimizer(tpe), branin, PLANE, 50)
    assert ours < typical_best(RandomSearch, branin, PLANE, 50)


def test_conditions_are_asked_for_as_they_come_up() -> None:
    optimizer = OptunaOptimizer(tpe)
    minimize(optimizer, branches, BRANCHES, 30, seed=1)
    names = {"tree": {"model", "depth"}, "net": {"model", "rate", "act"}, "line": {"model"}}
    known = optimizer._study.trials
    assert {trial.params["model"] for trial in optimizer.trials.values()} == set(names)
    for trial in optimizer.trials.values():
        assert set(known[trial.info["trial"]].params) == names[trial.params["model"]] == set(trial.params)


@pytest.mark.parametrize("make", [lambda: OptunaOptimizer(tpe), CMAES, NSGA2])
def test_every_kind_of_parameter_arrives_as_it_should(make: Any) -> None:
    optimizer = ready(make(), EVERYTHING)
    trials = [ask(optimizer) for _ in range(20)]
    for trial in trials:
        assert EVERYTHING.validate(trial.params) == trial.params
    for name in ("layers", "dropout", "batch", "act"):
        assert len({repr(trial.params[name]) for trial in trials}) == EVERYTHING[name].count or name == "dropout"


def test_the_study_knows_what_runs_failed_and_was_stopped() -> None:
    optimizer = ready(OptunaOptimizer(tpe), direction="max")
    trials = [ask(optimizer) for _ in range(6)]
    end(optimizer, trials[0], 5.0)
    end(optimizer, trials[1], state=TrialState.FAILED)
    end(optimizer, trials[2], state=TrialState.STOPPED)
    end(optimizer, trials[3], math.nan)
    end(optimizer, trials[4], state=TrialState.PAUSED)
    assert studied(optimizer) == ["COMPLETE", "FAIL", "PRUNED", "FAIL", "RUNNING", "RUNNING"]
    assert optimizer._study.trials[0].values == [-5.0]


def test_trials_say_who_suggested_them() -> None:
    trial = ask(ready(NSGA2()))
    assert trial.info == {"by": "NSGAIISampler", "optuna": optuna.__version__, "trial": 0}


def test_breaking_constraints_is_worse_than_the_worst() -> None:
    optimizer = ready(OptunaOptimizer(tpe))
    for value, violation in ((1.0, 0.0), (7.0, 0.0), (-50.0, 2.0), (0.0, math.inf)):
        end(optimizer, ask(optimizer), value, violation=violation)
    assert [trial.values for trial in optimizer._study.trials] == [[1.0], [7.0], [9.0], None]


def test_several_objectives_are_minimized_together() -> None:
    optimizer = ready(NSGA2(), objectives={"accuracy": "max", "latency": "min"})
    end(optimizer, ask(optimizer), metrics={"accuracy": 0.9, "latency": 20.0, "other": 1.0})
    end(optimizer, ask(optimizer), metrics={"accuracy": 0.9})
    assert [trial.values for trial in optimizer._study.trials] == [[-0.9, 20.0], None]
    assert not CMAES.handles_objectives


def test_somebody_elses_trial_is_made_known() -> None:
    optimizer = ready(OptunaOptimizer(tpe), EVERYTHING)
    params = {
        "rate": 0.01, "momentum": 0.9, "layers": 3, "units": 64, "dropout": 0.3, "batch": 64, "act": (1, 2)
    }  # fmt: skip
    end(optimizer, Trial(params, number=0), 1.0)
    end(optimizer, Trial({"rate": 5.0}, number=1), 1.0)
    (known,) = optimizer._study.trials
    assert known.values == [1.0]
    assert {name: known.params[name] for name in ("layers", "dropout", "batch", "act")} == {
        "layers": 2,
        "dropout": 3,
        "batch": 1,
        "act": 3,
    }
    asked = ask(optimizer)
    assert asked.info["trial"] == 1
    assert optimizer._study.trials[1].distributions == known.distributions


def test_a_point_to_start_from_takes_the_place_of_a_suggestion() -> None:
    optimizer = ready(OptunaOptimizer(tpe))
    asked = ask(optimizer)
    end(optimizer, Trial({"x": 5.0, "y": 7.5}, number=0, info=asked.info), 1.0)
    assert studied(optimizer) == ["FAIL", "COMPLETE"]
    known = optimizer._study.trials[1]
    assert known.params["y"] == pytest.approx(0.5)
    assert known.values == [1.0]


def test_a_finite_space_is_used_up_without_repetition() -> None:
    optimizer = ready(CMAES(), Searchspace(a=("INTEGER", [1, 4]), b=["x", "y"]))
    seen = [tuple(ask(optimizer).params.values()) for _ in range(8)]
    assert len(set(seen)) == 8
    assert optimizer.get_suggestion() is None


def test_a_sampler_object_is_taken_as_it_is() -> None:
    sampler = optuna.samplers.RandomSampler(seed=1)
    optimizer = ready(OptunaOptimizer(sampler))
    assert optimizer._study.sampler is sampler


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    with pytest.raises(
        InvalidInputError, match=r"optimizer gp needs torch, .* pip install 'cargobike\[optuna\]' torch"
    ):
        GaussianProcess()
    assert isinstance(resolve_optimizer("nsga2"), NSGA2)


def test_optuna_keeps_its_own_volume(caplog: pytest.LogCaptureFixture) -> None:
    before = optuna.logging.get_verbosity()
    ready(NSGA2())
    assert optuna.logging.get_verbosity() == before
    assert caplog.records == []
