from __future__ import annotations

import random
from typing import Any

import pytest

from cargobike.core.errors import SpaceError
from cargobike.core.records import Params
from cargobike.search.optimizers.gridsearch import GridSearch
from cargobike.search.optimizers.listed import Listed
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.spaces.space import Searchspace


def started(
    optimizer: AbstractOptimizer, space: Searchspace, num_trials: int | None = None, seed: int = 1
) -> AbstractOptimizer:
    optimizer.setup(space, num_trials=num_trials, direction="max", seed=seed)
    optimizer.initialize()
    return optimizer


def everything(optimizer: AbstractOptimizer, at_most: int = 30_000) -> list[Params]:
    found: list[Params] = []
    while len(found) < at_most:
        suggestion = optimizer.get_suggestion()
        if suggestion is None:
            break
        assert isinstance(suggestion, dict)
        found.append(suggestion)
    return found


def unique(found: list[Params]) -> int:
    return len({repr(params) for params in found})


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("size", [1, 7, 500, 12_000])
def test_random_search_uses_a_finite_space_up_without_repeating(size: int, scale: str) -> None:
    spec = ("INTEGER", [1, size], scale) if size > 1 else [1]
    found = everything(started(RandomSearch(), Searchspace(n=spec)))
    assert sorted(params["n"] for params in found) == list(range(1, size + 1))


def test_random_search_tries_every_value_of_a_range_whose_grid_is_thin() -> None:
    space = Searchspace(n=("INTEGER", [1, 50], {"points": 3}), flag=[True, 1])
    assert unique(everything(started(RandomSearch(), space))) == 100


def test_random_search_does_not_repeat_the_countable_part_of_an_endless_space() -> None:
    space = Searchspace(opt=["adam", "sgd"], lr=("DOUBLE", [0, 1], {"when": {"opt": "sgd"}}))
    found = everything(started(RandomSearch(), space), at_most=200)
    assert sum(params == {"opt": "adam"} for params in found) == 1
    assert len(found) == unique(found) == 200


def test_random_search_of_nothing_is_one_trial() -> None:
    assert everything(started(RandomSearch(), Searchspace())) == [{}]


def test_random_search_draws_like_the_space() -> None:
    space = Searchspace(lr=("DOUBLE", [1e-4, 1], "log"), n=("INTEGER", [1, 10**9]))
    found = everything(started(RandomSearch(), space, num_trials=5, seed=3))
    assert found == space.get_random_parameter_values(5, random.Random(3))


def test_random_search_takes_its_numbers_the_old_way() -> None:
    space = Searchspace(lr=("DOUBLE", [0, 1]))
    optimizer = RandomSearch(5, space)
    assert (optimizer.preset_num_trials, optimizer.preset_space) == (5, space)
    assert len(everything(started(optimizer, space))) == 5
    assert len(everything(started(optimizer, space, num_trials=3))) == 3


@pytest.mark.parametrize("optimizer", [RandomSearch(), GridSearch(), Listed([{"n": n} for n in range(9)])])
def test_num_trials_is_a_limit_and_a_new_start_is_a_new_start(optimizer: AbstractOptimizer) -> None:
    space = Searchspace(n=("INTEGER", [0, 8]))
    first = everything(started(optimizer, space, num_trials=4))
    assert len(first) == 4
    assert optimizer.get_suggestion() is None
    assert everything(started(optimizer, space, num_trials=4)) == first


def test_grid_search_goes_through_the_grid() -> None:
    space = Searchspace(lr=("DOUBLE", [0, 1]), act=["a", "b"])
    assert everything(started(GridSearch({"lr": 3}), space)) == list(space.grid({"lr": 3}))
    with pytest.raises(SpaceError, match="'points': 5"):
        started(GridSearch(), space)


def test_listed_tries_exactly_the_list() -> None:
    sets: list[dict[str, Any]] = [{"a": 1}, {"a": 1}, {"b": [1, {"c": None}]}, {}]
    optimizer = Listed(iter(sets))
    first = started(optimizer, Searchspace()).get_suggestion()
    assert isinstance(first, dict)
    first["a"] = 99
    sets[1]["a"] = 98
    assert everything(optimizer) == [{"a": 1}, {"b": [1, {"c": None}]}, {}]


def test_listed_reports_all_mistakes() -> None:
    with pytest.raises(SpaceError) as caught:
        Listed([{"a": object()}, 5, {1: 2}, {"b": [float("nan")]}, {"c": {1: 2}}])  # type: ignore[list-item, dict-item]
    assert [mistake.split(":")[0] for mistake in caught.value.mistakes] == [f"number {n}" for n in range(5)]
    with pytest.raises(SpaceError, match="list is empty"):
        Listed([])
