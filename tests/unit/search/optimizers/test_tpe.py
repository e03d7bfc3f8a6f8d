"""TPE learns: from scores, from failures, from what is still running."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Params, Suggestion, Trial, TrialState
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.tpe import TPE
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import Fate, Outcome, drive
from support.functions import BRANCHES, PLANE, branches, branin, typical_best


@pytest.mark.parametrize(("space", "function"), [(PLANE, branin), (BRANCHES, branches)])
@pytest.mark.parametrize("multivariate", [True, False])
def test_it_beats_random_search(space: Searchspace, function: Callable[[Params], float], multivariate: bool) -> None:
    ours = typical_best(lambda: TPE(multivariate=multivariate), function, space, 60)
    assert ours < typical_best(RandomSearch, function, space, 60) / 2


def test_it_says_who_suggested_what() -> None:
    result = drive(TPE(startup=5), branin, space=PLANE, num_trials=8, direction="min")
    assert [trial.info["by"] for trial in result.trials] == ["sobol"] * 5 + ["model"] * 3


@pytest.mark.parametrize("fate", ["failed", "stopped", "nan"])
def test_a_region_without_scores_is_left_alone(fate: str) -> None:
    def objective(params: Params) -> Outcome:
        if params["x"] > 2.5:
            if fate == "failed":
                raise RuntimeError("out of memory")
            return Fate.STOPPED if fate == "stopped" else float("nan")
        return 1.0  # so that nothing but the missing scores tells the halves apart

    result = drive(TPE(), objective, space=PLANE, num_trials=40, seed=2)
    late = [trial for trial in result.trials[20:] if trial.params["x"] > 2.5]
    assert len(late) <= 4


def test_broken_constraints_count_before_the_score() -> None:
    optimizer = TPE(startup=5)
    optimizer.setup(PLANE, num_trials=None, direction="min", seed=0)
    optimizer.initialize()
    rng = random.Random(0)
    for number in range(40):
        params = PLANE.sample(rng)
        x = float(params["x"])
        # The lower x the better the score, but below 5 it is forbidden.
        trial = Trial(params, number=number, state=TrialState.COMPLETED, value=x, violation=max(0.0, 5.0 - x))
        optimizer.trials[number] = trial
        optimizer.observe(trial)
    assert statistics.mean(float(ask(optimizer).params["x"]) for _ in range(20)) > 3.0


def test_without_any_score_it_goes_on_covering_the_space() -> None:
    result = drive(TPE(startup=3), lambda params: math.nan, space=PLANE, num_trials=10)
    assert {trial.info["by"] for trial in result.trials} == {"sobol"}


def shown(optimizer: TPE, values: list[float], space: Searchspace) -> None:
    """Set up, and show finished trials at evenly spread places."""
    optimizer.setup(space, num_trials=None, direction="min", seed=0)
    optimizer.initialize()
    rng = random.Random(0)
    for number, value in enumerate(values):
        trial = Trial(space.sample(rng), number=number, state=TrialState.COMPLETED, value=value)
        optimizer.trials[number] = trial
        optimizer.observe(trial)


def ask(optimizer: TPE) -> Suggestion:
    answer = optimizer.get_suggestion()
    assert isinstance(answer, Suggestion)
    return answer


def test_running_trials_are_kept_away_from() -> None:
    line = Searchspace(x=("DOUBLE", [0.0, 1.0]))
    optimizer = TPE()
    optimizer.setup(line, num_trials=None, direction="min", seed=0)
    optimizer.initialize()
    for number in range(30):
        x = number / 29
        trial = Trial({"x": x}, number=number, state=TrialState.COMPLETED, value=abs(x - 0.5))
        optimizer.trials[number] = trial
        optimizer.observe(trial)

    def distance() -> float:
        return statistics.mean(abs(float(ask(optimizer).params["x"]) - 0.5) for _ in range(40))

    alone = distance()
    for number in range(30, 45):
        optimizer.trials[number] = Trial({"x": 0.5}, number=number)
    assert distance() > 1.5 * alone


def test_a_finite_space_is_used_up_without_repetition() -> None:
    space = Searchspace(a=("INTEGER", [1, 5]), b=["x", "y", "z"])
    result = drive(TPE(startup=4), lambda params: params["a"], space=space, at_most=50, workers=3)
    assert len({tuple(params.items()) for params in result.suggestions}) == len(result.trials) == 15
    assert result.exhausted


def test_what_others_have_tried_is_not_tried_again() -> None:
    space = Searchspace(a=("INTEGER", [1, 3]), b=["x", "y"])
    optimizer = TPE(startup=2)
    optimizer.setup(space, num_trials=None, direction="min", seed=0)
    optimizer.initialize()
    optimizer.trials[0] = Trial({"a": 2, "b": "y"}, number=0)
    asked: list[Params] = []
    while (answer := optimizer.get_suggestion()) is not None:
        assert isinstance(answer, Suggestion)
        asked.append(answer.params)
        optimizer.trials[len(asked)] = Trial(answer.params, number=len(asked))
    assert len(asked) == 5
    assert {"a": 2, "b": "y"} not in asked


def test_strange_trials_are_passed_over() -> None:
    optimizer = TPE(startup=2)
    shown(optimizer, [3.0, 1.0, 2.0], PLANE)
    foreign = Trial({"z": 3}, number=3, state=TrialState.COMPLETED, value=-100.0)
    optimizer.trials[3] = foreign
    optimizer.observe(foreign)
    assert PLANE.contains(ask(optimizer).params)


def test_a_space_without_parameters_is_searched_once() -> None:
    assert drive(TPE(startup=1), lambda params: 1.0, space=Searchspace(), at_most=5).suggestions == [{}]


@pytest.mark.parametrize("wrong", [{"startup": 0}, {"candidates": 0}])
def test_wrong_arguments_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError, match="must be at least 1"):
        TPE(**wrong)  # type: ignore[arg-type]
