"""Sobol points are spread evenly, differently for each seed."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.sobol import Sobol, SobolSequence
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import drive
from support.functions import PLANE


def points(width: int, count: int, seed: int = 0) -> list[list[float]]:
    sequence = SobolSequence(width, random.Random(seed))
    return [sequence.next() for _ in range(count)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [2, 8, 64, 256])
def test_every_column_puts_one_point_in_each_cell(seed: int, count: int) -> None:
    for column in zip(*points(37, count, seed), strict=True):
        assert sorted(int(value * count) for value in column) == list(range(count))


def test_pairs_of_columns_fill_the_square() -> None:
    count = 256
    found = points(12, count)
    empty = 0
    for left, right in combinations(range(12), 2):
        cells = {(int(point[left] * 16), int(point[right] * 16)) for point in found}
        empty += count - len(cells)
    # Random points would leave one cell in e empty.
    assert empty / (66 * count) < 0.25


def test_the_mean_of_a_function_is_found_sooner_than_by_chance() -> None:
    def error(rows: list[list[float]]) -> float:
        return abs(sum(math.prod(1 + (x - 0.5) for x in row) for row in rows) / len(rows) - 1.0)

    ours = sum(error(points(6, 128, seed)) for seed in range(20))
    chance = sum(error([[random.Random(seed * 997 + n * 6 + c).random() for c in range(6)] for n in range(128)]) for seed in range(20))  # fmt: skip # noqa: E501
    assert ours < chance / 4


def test_seeds_differ_and_repeat() -> None:
    assert points(4, 10, seed=1) == points(4, 10, seed=1) != points(4, 10, seed=2)
    assert all(0.0 < value < 1.0 for point in points(40, 300) for value in point)


def test_more_columns_than_the_table_has_are_random() -> None:
    assert [len(point) for point in points(50, 3)] == [50] * 3


def test_a_finite_space_is_used_up_without_repetition() -> None:
    space = Searchspace(a=("INTEGER", [1, 6]), b=["x", "y", "z"])
    result = drive(Sobol(), lambda params: params["a"], space=space, at_most=50, workers=3)
    assert len({tuple(params.items()) for params in result.suggestions}) == len(result.trials) == 18
    assert result.exhausted


def test_a_search_leaves_no_holes() -> None:
    def largest_gap(optimizer: RandomSearch) -> float:
        found = drive(optimizer, lambda params: 0.0, space=PLANE, num_trials=32, seed=5).suggestions
        grid = [(x / 2 - 5.0, y / 2) for x in range(31) for y in range(31)]
        return max(min(math.hypot(p["x"] - x, p["y"] - y) for p in found) for x, y in grid)

    assert largest_gap(Sobol()) < largest_gap(RandomSearch())
