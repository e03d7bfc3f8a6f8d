"""DEHB: the best of the highest level that has enough trials are mixed."""

from __future__ import annotations

import random
import statistics

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Params, Trial
from cargobike.search.optimizers.dehb import DEHB, EvolutionSampler
from cargobike.search.spaces.space import Searchspace

LINE = Searchspace(x=("DOUBLE", [0.0, 1.0]), y=("DOUBLE", [0.0, 1.0]))


def ready(sampler: EvolutionSampler, space: Searchspace = LINE, direction: str = "min") -> EvolutionSampler:
    sampler.setup(space, direction="min" if direction == "min" else "max", rng=random.Random(4))
    return sampler


def show(sampler: EvolutionSampler, resource: int, centre: float, count: int, sign: float = 1.0) -> None:
    rng = random.Random(resource)
    for index in range(count):
        params = LINE.sample(rng)
        sampler.observe(Trial(params, number=index), resource, sign * abs(float(params["x"]) - centre))


def typical(sampler: EvolutionSampler) -> float:
    return statistics.median(float((sampler.suggest() or {})["x"]) for _ in range(40))


@pytest.mark.parametrize(("direction", "sign"), [("min", 1.0), ("max", -1.0)])
def test_the_best_of_the_highest_level_are_mixed(direction: str, sign: float) -> None:
    sampler = ready(EvolutionSampler(random_share=0.0), direction=direction)
    show(sampler, 1, 0.1, 60, sign)
    assert abs(typical(sampler) - 0.1) < 0.15
    show(sampler, 3, 0.9, 3, sign)
    assert abs(typical(sampler) - 0.1) < 0.15
    show(sampler, 3, 0.9, 60, sign)
    assert abs(typical(sampler) - 0.9) < 0.15


def test_scores_that_are_no_numbers_are_not_mixed() -> None:
    sampler = ready(EvolutionSampler(random_share=0.0))
    show(sampler, 1, 0.1, 60)
    for strange in (float("nan"), float("inf"), float("-inf")):
        for index in range(20):
            sampler.observe(Trial({"x": 0.9, "y": 0.5}, number=index), 1, strange)
    sampler.observe(Trial({"z": 0.9}, number=99), 1, -5.0)
    assert abs(typical(sampler) - 0.1) < 0.15


def test_a_finite_space_is_used_up_without_repetition() -> None:
    sampler = ready(EvolutionSampler(), Searchspace(a=("INTEGER", [1, 4]), b=["x", "y"]))
    seen: list[Params] = []
    while (params := sampler.suggest()) is not None:
        seen.append(params)
        sampler.observe(Trial(params, number=len(seen)), 1, float(params["a"]))
    assert len(seen) == len({repr(params) for params in seen}) == 8


def test_a_population_that_cannot_be_mixed_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="population=3: a mixture needs 4"):
        DEHB(population=3)
