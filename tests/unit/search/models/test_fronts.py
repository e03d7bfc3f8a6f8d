"""Several objectives: fronts, and TPE that moves along the foremost."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.goals import pareto_front
from cargobike.core.records import Direction, Suggestion, Trial, TrialState
from cargobike.search.models.fronts import FrontContrast, order_by_fronts
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.tpe import TPE
from cargobike.search.spaces.encoding import Encoding
from cargobike.search.spaces.space import Searchspace

SPACE = Searchspace({f"x{index}": ("DOUBLE", [0.0, 1.0]) for index in range(4)})


def test_fronts_come_one_after_the_other_and_ends_first() -> None:
    losses = np.array([[2.0, 2.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [3.0, 3.0], [0.1, 0.95]])
    assert order_by_fronts(losses, np.zeros(6)) == [1, 2, 3, 5, 0, 4]
    assert order_by_fronts(losses, np.array([0, 2.0, 0, 0, 1.0, 0])) == [2, 5, 3, 0, 4, 1]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_the_first_front_is_the_pareto_front(rows: list[tuple[int, int]]) -> None:
    objectives: dict[str, Direction] = {"a": "min", "b": "min"}
    trials = [
        Trial({}, number=number, state=TrialState.COMPLETED, metrics={"a": float(a), "b": float(b)})
        for number, (a, b) in enumerate(rows)
    ]
    front = {trial.number for trial in pareto_front(trials, objectives)}
    order = order_by_fronts(np.array(rows, dtype=np.float64), np.zeros(len(rows)))
    assert set(order[: len(front)]) == front
    assert sorted(order) == list(range(len(rows)))


def test_a_contrast_keeps_every_trial_and_the_best_ahead() -> None:
    encoding = Encoding(SPACE)
    contrast = FrontContrast(encoding, 2)
    rng = np.random.default_rng(0)
    table = rng.random((150, 2))
    for number, losses in enumerate(table):
        contrast.learn_losses(rng.random(4), None if number % 10 == 3 else losses, 0.0)
    scored = [number for number in range(150) if number % 10 != 3]
    assert len(contrast) == len(scored) == 135
    assert sorted(index for _, index in contrast._ranking) == list(range(150))
    wanted = order_by_fronts(table[scored], np.zeros(len(scored)))
    front = [scored[place] for place in wanted]
    assert {index for _, index in contrast._ranking[:10]} == set(front[:10])


def volume(make: type[AbstractOptimizer], seed: int) -> float:
    """Return how much of the unit square the trials of a search dominate; the most there can be is 2 / 3."""
    optimizer = make()
    optimizer.setup(SPACE, num_trials=60, direction="min", seed=seed)
    optimizer.objectives = {"cost": "min", "quality": "max"}
    optimizer.initialize()
    found = []
    for number in range(60):
        answer = optimizer.get_suggestion()
        params = answer.params if isinstance(answer, Suggestion) else answer
        assert isinstance(params, dict)
        waste = sum(params[f"x{index}"] for index in range(1, 4)) / 3
        loss = (1 + 2 * waste) * (1 - (params["x0"] / (1 + 2 * waste)) ** 0.5)
        found.append((params["x0"], loss))
        metrics = {"cost": params["x0"], "quality": -loss}
        trial = Trial(params, number=number, state=TrialState.COMPLETED, metrics=metrics)
        optimizer.trials[number] = trial
        optimizer.observe(trial)
    samples = random.Random(1)
    points = [(samples.random(), samples.random()) for _ in range(1500)]
    return sum(any(a <= x and b <= y for a, b in found) for x, y in points) / len(points)


def test_it_covers_more_than_chance() -> None:
    ours, chance = (sorted(volume(make, seed) for seed in range(5)) for make in (TPE, RandomSearch))
    assert ours[2] > chance[2] + 0.1
    assert ours[0] > chance[2]


@pytest.mark.parametrize("metrics", [{}, {"cost": float("nan"), "quality": 1.0}])
def test_trials_without_all_numbers_have_no_score(metrics: dict[str, float]) -> None:
    optimizer = TPE(startup=1)
    optimizer.setup(SPACE, num_trials=None, direction="min", seed=0)
    optimizer.objectives = {"cost": "min", "quality": "max"}
    optimizer.initialize()
    trial = Trial(SPACE.sample(random.Random(0)), number=0, state=TrialState.COMPLETED, metrics=metrics)
    optimizer.trials[0] = trial
    optimizer.observe(trial)
    answer = optimizer.get_suggestion()
    assert isinstance(answer, Suggestion)
    assert answer.info["by"] == "sobol"
