"""Halving over a parameter that says how long to train."""

from __future__ import annotations

from collections import Counter

import pytest

from cargobike.core.errors import InvalidInputError, SpaceError
from cargobike.core.records import Params
from cargobike.search.optimizers.budgeted import Bracket, Budgeted, halving_bracket, hyperband_brackets
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.optimizers import Fate, OptimizerContract, drive

SPACE = Searchspace(x=("DOUBLE", [0.0, 1.0]), budget=("DISCRETE", [1, 2, 4]))


class TestBudgeted(OptimizerContract):
    def make_optimizer(self) -> Budgeted:
        return Budgeted([halving_bracket(self.num_trials, 2, 1, 4)], 2)

    def make_space(self) -> Searchspace:
        return Searchspace({**super().make_space().parameters, "budget": ("DISCRETE", [1, 2, 4])})


@pytest.mark.parametrize("direction", ["max", "min"])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_best_are_given_the_largest_budget(direction: str, workers: int) -> None:
    optimizer = Budgeted([halving_bracket(28, 2, 1, 4)], 2)
    run = drive(optimizer, lambda p: p["x"], space=SPACE, num_trials=28, workers=workers, seed=3, direction=direction)  # type: ignore[arg-type]
    counts = Counter(trial.params["budget"] for trial in run.trials)
    assert counts == {1: 16, 2: 8, 4: 4}
    sign = 1 if direction == "max" else -1
    ranked = sorted((sign * trial.params["x"] for trial in run.trials if trial.params["budget"] == 1), reverse=True)
    top = [sign * trial.params["x"] for trial in run.trials if trial.params["budget"] == 4]
    assert ranked[0] in top
    assert sum(top) / len(top) > sum(ranked) / len(ranked)


def test_a_trial_that_fails_is_not_given_more() -> None:
    def function(params: Params) -> float | Fate:
        if params["x"] > 0.5:
            raise ValueError("too large")
        return float(params["x"])

    run = drive(Budgeted([halving_bracket(14, 2, 1, 4)], 2), function, space=SPACE, num_trials=14, workers=2, seed=1)
    assert all(trial.params["x"] <= 0.5 for trial in run.trials if trial.params["budget"] > 1)
    assert any(trial.params["budget"] == 4 for trial in run.trials)


def test_a_finite_space_that_is_used_up_ends_the_search() -> None:
    space = Searchspace(x=("DISCRETE", [1, 2, 3]), budget=("DISCRETE", [1, 2, 4]))
    run = drive(Budgeted([halving_bracket(28, 2, 1, 4)], 2), lambda p: p["x"], space=space, num_trials=28, seed=1)
    assert sorted(trial.params["x"] for trial in run.trials if trial.params["budget"] == 1) == [1, 2, 3]
    assert {trial.params["x"] for trial in run.trials if trial.params["budget"] == 4} >= {3}


def test_the_last_budget_is_the_largest_however_few_trials_there_are() -> None:
    assert halving_bracket(1, 2, 1, 4) == Bracket((1,), (4,))
    assert halving_bracket(4, 2, 1, 4) == Bracket((3, 1), (1, 4))
    assert halving_bracket(8, 2, 1, 4) == Bracket((5, 2, 1), (1, 2, 4))


def test_hyperband_goes_from_many_short_trainings_to_few_long_ones() -> None:
    brackets = hyperband_brackets(1, 9, 3, 4)
    assert [bracket.counts for bracket in brackets] == [(9, 3, 1), (3, 1), (3,), (9, 3, 1)]
    assert brackets[2].budgets == (9,)
    space = Searchspace(x=("DOUBLE", [0.0, 1.0]), budget=("DISCRETE", [1, 3, 9]))
    run = drive(Budgeted(brackets, 3), lambda p: p["x"], space=space, num_trials=33, workers=4, seed=2)
    assert Counter(trial.params["budget"] for trial in run.trials) == {1: 18, 3: 9, 9: 6}


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(InvalidInputError, match=r"reduction_factor=1(?s:.*)as many counts as budgets(?s:.*)must rise"):
        Budgeted([Bracket((1,), (1, 2)), Bracket((2, 1), (4, 2))], 1)
    with pytest.raises(SpaceError, match=r"must hold budget=\[1, 2, 4\]"):
        drive(Budgeted([halving_bracket(7, 2, 1, 4)], 2), lambda p: 0.0, space=Searchspace(x=["a", "b"]), num_trials=7)
