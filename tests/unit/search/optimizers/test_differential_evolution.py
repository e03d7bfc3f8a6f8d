"""Differential evolution: places are challenged one by one, failures cost nothing but their trial."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Params, Suggestion, Trial, TrialState
from cargobike.search.optimizers.differential_evolution import DifferentialEvolution
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import drive
from support.functions import BRANCHES, PLANE, branches, branin, minimize, typical_best


@pytest.mark.parametrize(("space", "function"), [(PLANE, branin), (BRANCHES, branches)])
def test_it_beats_random_search(space: Searchspace, function: Callable[[Params], float]) -> None:
    ours = typical_best(DifferentialEvolution, function, space, 150)
    assert ours < typical_best(RandomSearch, function, space, 150) / 2


@pytest.mark.parametrize("count", [2, 3, 7, 60])
def test_any_number_of_choices_is_searched(count: int) -> None:
    space = Searchspace(
        a=("CATEGORICAL", [f"a{index}" for index in range(count)]),
        b=("CATEGORICAL", [f"b{index}" for index in range(count)]),
        x=("DOUBLE", [0.0, 1.0]),
    )

    def misses(params: Params) -> float:
        return float((params["a"] != f"a{count - 1}") + (params["b"] != "b0") + abs(params["x"] - 0.5))

    ours = typical_best(DifferentialEvolution, misses, space, 200)
    assert ours <= typical_best(RandomSearch, misses, space, 200)
    optimizer = DifferentialEvolution()
    minimize(optimizer, misses, space, 300, seed=1)
    seen = {trial.params["a"] for trial in optimizer.trials.values()}
    assert len(seen) > min(count, 20) * 0.9


def ready(population: int = 5) -> DifferentialEvolution:
    optimizer = DifferentialEvolution(population=population)
    optimizer.setup(PLANE, num_trials=None, direction="min", seed=4)
    optimizer.initialize()
    return optimizer


def ask(optimizer: DifferentialEvolution) -> Trial:
    answer = optimizer.get_suggestion()
    assert isinstance(answer, Suggestion)
    trial = Trial(answer.params, number=len(optimizer.trials), info=answer.info)
    optimizer.trials[trial.number] = trial
    return trial


def tell(optimizer: DifferentialEvolution, trial: Trial, value: float | None) -> None:
    state = TrialState.FAILED if value is None else TrialState.COMPLETED
    ended = Trial(trial.params, number=trial.number, state=state, value=value, info=trial.info)
    optimizer.trials[trial.number] = ended
    optimizer.observe(ended)


def test_a_first_trial_that_failed_is_replaced_by_a_draw() -> None:
    optimizer = ready()
    first = [ask(optimizer) for _ in range(5)]
    assert [trial.info for trial in first] == [{"by": "random", "place": place} for place in range(5)]
    for trial in first[:4]:
        tell(optimizer, trial, 1.0)
    tell(optimizer, first[4], None)
    assert ask(optimizer).info == {"by": "random", "place": 4}


def test_nobody_waits_for_a_generation() -> None:
    optimizer = ready()
    first = [ask(optimizer) for _ in range(5)]
    for trial in first[:4]:
        tell(optimizer, trial, 1.0)
    # The fifth is still running, and so are all challengers: places are challenged in turns meanwhile.
    assert [ask(optimizer).info for _ in range(5)] == [{"by": "mixture", "place": place} for place in (0, 1, 2, 3, 0)]


def test_a_challenger_takes_its_place_only_by_being_better() -> None:
    optimizer = ready(population=4)
    for trial in [ask(optimizer) for _ in range(4)]:
        tell(optimizer, trial, 10.0)
    worse, better = ask(optimizer), ask(optimizer)
    tell(optimizer, worse, 11.0)
    tell(optimizer, better, 1.0)
    losses = [member.stands[1] for member in optimizer._members if member is not None]
    assert losses == [10.0, 1.0, 10.0, 10.0]


def test_somebody_elses_trial_replaces_the_weakest() -> None:
    optimizer = ready(population=4)
    for value, trial in enumerate([ask(optimizer) for _ in range(4)]):
        tell(optimizer, trial, float(value))
    stranger = Trial({"x": 0.0, "y": 0.0}, number=4, state=TrialState.COMPLETED, value=-1.0)
    optimizer.observe(stranger)
    optimizer.observe(Trial({"z": 0.0}, number=5, state=TrialState.COMPLETED, value=-9.0))
    losses = [member.stands[1] for member in optimizer._members if member is not None]
    assert losses == [0.0, 1.0, 2.0, -1.0]


def test_a_finite_space_is_used_up_without_repetition() -> None:
    space = Searchspace(a=("INTEGER", [1, 5]), b=["x", "y", "z"])
    result = drive(DifferentialEvolution(), lambda params: params["a"], space=space, at_most=50, workers=3)
    assert len({tuple(params.items()) for params in result.suggestions}) == len(result.trials) == 15
    assert result.exhausted


def test_wrong_arguments_are_refused_together() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)population=3: .*crossover=2: "):
        DifferentialEvolution(population=3, crossover=2)
