from __future__ import annotations

import itertools
from typing import Any

import pytest

from cargobike.core.errors import SpaceError
from cargobike.search.spaces.space import Searchspace


def test_the_last_parameter_changes_fastest() -> None:
    space = Searchspace(lr=[0.1, 0.01], layers=("INTEGER", [1, 2]), act=["relu"])
    assert list(space.grid()) == [
        {"lr": 0.1, "layers": 1, "act": "relu"},
        {"lr": 0.1, "layers": 2, "act": "relu"},
        {"lr": 0.01, "layers": 1, "act": "relu"},
        {"lr": 0.01, "layers": 2, "act": "relu"},
    ]
    assert space.grid_size() == 4


def test_a_range_is_taken_apart_on_its_scale() -> None:
    space = Searchspace(lr=("DOUBLE", [1e-4, 1e-2], "log", {"points": 3}), n=("INTEGER", [1, 1000], "log"))
    values = [params["lr"] for params in space.grid({"n": 1})]
    assert values == pytest.approx([1e-4, 1e-3, 1e-2])
    assert [params["n"] for params in space.grid({"lr": 1, "n": 4})] == [1, 10, 100, 1000]
    assert values[0] == 1e-4
    assert values[-1] == 1e-2


def test_more_points_than_values_are_the_values() -> None:
    space = Searchspace(n=("INTEGER", [1, 3], {"points": 10}), d=("DOUBLE", [0, 1], {"step": 0.5}))
    assert len(list(space.grid())) == 9 == space.grid_size()
    assert [params["d"] for params in space.grid({"d": 1, "n": 1})] == [0.5]


def test_conditions_make_no_duplicates() -> None:
    space = Searchspace(
        opt=["sgd", "adam"],
        momentum=("DOUBLE", [0, 1], {"points": 2, "when": {"opt": "sgd"}}),
        nesterov=("CATEGORICAL", [True, False], {"when": {"momentum2": 1}}),
        momentum2=("INTEGER", [0, 1], {"when": {"opt": "sgd"}}),
    )
    grid = list(space.grid())
    assert {"opt": "adam"} in grid
    assert len(grid) == 1 + 2 * 3 == space.grid_size()


def test_only_what_the_grid_takes_brings_others_to_life() -> None:
    space = Searchspace(n=("INTEGER", [1, 9]), extra=("INTEGER", [0, 4], {"when": {"n": [1, 2]}}))
    grid = list(space.grid({"n": 2}))
    assert [params["n"] for params in grid] == [1, 1, 1, 1, 1, 9]
    assert space.grid_size({"n": 2}) == 6
    assert space.size == 5 + 5 + 7


def test_a_large_grid_is_neither_counted_nor_started_by_making_it() -> None:
    million = ("INTEGER", [1, 10**6])
    space = Searchspace(a=million, b=million, c=("INTEGER", [1, 10**6], {"when": {"a": 5}}))
    assert space.size == (10**6 - 1) * 10**6 + 10**12
    assert list(itertools.islice(space.grid(), 2)) == [{"a": 1, "b": 1}, {"a": 1, "b": 2}]


def test_an_endless_range_says_how_to_count_it() -> None:
    space = Searchspace(lr=("DOUBLE", [0, 1]), m=("DOUBLE", [0, 1]), n=[1])
    assert not space.is_finite
    assert space.size is None
    with pytest.raises(SpaceError, match="'points': 5") as caught:
        space.grid()
    assert len(caught.value.mistakes) == 2
    assert space.grid_size({"lr": 2, "m": 3}) == 6


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"rl": 2}, r"not a parameter. Did you mean 'lr'\?"),
        ({"act": 2}, "always used whole"),
        ({"lr": 0}, "at least 1, not 0"),
        ({"lr": 1.5}, "at least 1, not 1.5"),
        ({"lr": True}, "at least 1, not True"),
    ],
)
def test_counts_are_checked(counts: dict[str, Any], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Searchspace(lr=("DOUBLE", [0, 1], {"points": 2}), act=["a"]).grid(counts)


def test_a_space_without_parameters_has_one_combination() -> None:
    assert list(Searchspace().grid()) == [{}]
    assert Searchspace().size == 1
