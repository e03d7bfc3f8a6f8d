"""A search that goes on in a changed space."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike.core.records import Decision, Trial, TrialState
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.differential_evolution import DifferentialEvolution
from cargobike.search.optimizers.extended import Extended, fitted
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.pbt import PopulationBasedTraining
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.sobol import Sobol
from cargobike.search.optimizers.tpe import TPE
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import drive
from cargobike.testing.optimizers import OptimizerContract

NARROW = Searchspace(x=("DOUBLE", [0.0, 1.0]))
WIDE = Searchspace(x=("DOUBLE", [0.5, 9.0]), act=["relu", "gelu"])
EVERY: list[Any] = [
    RandomSearch,
    Sobol,
    lambda: TPE(startup=3),
    DifferentialEvolution,
    lambda: ASHA(variant="stopping"),
    lambda: PopulationBasedTraining(6, interval=1),
]


class TestBeforeAnyChange(OptimizerContract):
    """Until the space changes nothing differs from the first optimizer."""

    def make_optimizer(self) -> AbstractOptimizer:
        return Extended(TPE(startup=3), [TPE(startup=3)])


def tell(optimizer: Extended, number: int, params: dict[str, Any], **what: Any) -> Trial:
    """Show a trial as the driver does."""
    trial = Trial(params, number=number, state=TrialState.COMPLETED, value=float(params["x"]), **what)
    optimizer.trials[number] = trial
    optimizer.final_store.append(trial)
    optimizer.observe(trial)
    return trial


def begin(optimizer: Extended, number: int) -> dict[str, Any]:
    answer = optimizer.get_suggestion()
    assert answer is not None
    params: dict[str, Any] = answer if isinstance(answer, dict) else answer.params  # type: ignore[union-attr]
    optimizer.trials[number] = Trial(params, number=number, info=dict(getattr(answer, "info", {})))
    return params


@pytest.mark.parametrize("make", EVERY)
def test_suggestions_lie_in_the_space_of_their_time(make: Any) -> None:
    optimizer = Extended(make(), [make()])
    optimizer.setup(NARROW, num_trials=12, direction="max", seed=1)
    optimizer.initialize()
    for number in range(6):
        params = begin(optimizer, number)
        assert NARROW.contains(params)
        tell(optimizer, number, params, info=optimizer.trials[number].info)
    optimizer.change(WIDE, {"act": "relu"})
    seen = []
    for number in range(6, 12):
        params = begin(optimizer, number)
        assert WIDE.contains(params)
        seen.append(params["x"])
        tell(optimizer, number, params, info=optimizer.trials[number].info)
    assert max(seen) > 1.0
    optimizer.finalize_experiment(list(optimizer.trials.values()))


class Student(RandomSearch):
    """Notes what it learns, and pauses everything."""

    def initialize(self) -> None:
        super().initialize()
        self.past: list[dict[str, Any]] = []
        self.seen: list[int] = []

    def learn_from(self, trials: Any) -> None:
        self.past += [trial.params for trial in trials]

    def observe(self, trial: Trial) -> None:
        self.seen.append(trial.number)

    def judge(self, trial: Trial, step: int, trials: Any) -> Decision:
        assert all(other.number >= 0 for other in trials)
        return Decision.STOP


def test_the_next_optimizer_learns_from_trials_that_fit_now_or_later() -> None:
    first, second = Student(), Student()
    optimizer = Extended(first, [second])
    optimizer.setup(NARROW, num_trials=8, direction="max", seed=1)
    optimizer.initialize()
    for number in range(4):
        optimizer.trials[number] = Trial({"x": 0.3 + 0.2 * number}, number=number)
    for number in (0, 1, 2):
        tell(optimizer, number, {"x": 0.3 + 0.2 * number})
    optimizer.change(WIDE, {"act": "relu"})
    assert second.num_trials == 4, "so many are left"
    assert [params["x"] for params in second.past] == pytest.approx([0.5, 0.7]), "0.3 lies outside"
    assert all(params["act"] == "relu" for params in second.past)
    late = tell(optimizer, 3, {"x": 0.9})
    assert second.past[-1] == {"x": 0.9, "act": "relu"}, "a trial of the earlier space that ended later"
    assert optimizer.judge(late, 1, [late]) is Decision.CONTINUE, "it goes on to its end"
    params = begin(optimizer, 4)
    new = tell(optimizer, 4, params)
    assert (first.seen, second.seen) == ([0, 1, 2], [0]), "each optimizer counts its own trials from 0"
    assert optimizer.judge(new, 1, [late, new]) is Decision.STOP


def test_a_trial_fits_with_what_it_had_for_new_parameters() -> None:
    trial = Trial({"x": 0.7}, number=3, info={"rung": 1})
    assert fitted(trial, WIDE, {}) is None
    fit = fitted(trial, WIDE, {"act": "gelu"})
    assert fit is not None
    assert (fit.params, fit.info) == ({"x": 0.7, "act": "gelu"}, {})
    assert trial.params == {"x": 0.7}


def test_the_contract_drive_sees_no_difference() -> None:
    alone = drive(TPE(), lambda params: float(params["x"]), space=NARROW, num_trials=15, workers=3)
    wrapped = drive(Extended(TPE(), [TPE()]), lambda params: float(params["x"]), space=NARROW, num_trials=15, workers=3)
    assert alone.answers == wrapped.answers
