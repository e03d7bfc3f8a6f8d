"""Parzen estimators: what is drawn has the density that is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cargobike.search.models.parzen import Parzen
from cargobike.search.spaces.encoding import Booleans, Encoding, Floats
from cargobike.search.spaces.space import Searchspace

LINE = Encoding(Searchspace(x=("DOUBLE", [0.0, 1.0])))
MIXED = Encoding(Searchspace(x=("DOUBLE", [0.0, 1.0]), k=("CATEGORICAL", list("abcd")), n=("INTEGER", [1, 5])))


def test_a_density_of_one_number_integrates_to_one() -> None:
    grid = ((np.arange(4000) + 0.5) / 4000)[:, None]
    for points in ([0.0], [0.02, 0.5], [0.9, 0.91, 0.92, 1.0]):
        density = np.exp(Parzen(LINE, np.array(points)[:, None]).log_density(grid))
        assert abs(density.mean() - 1.0) < 2e-3


def test_a_density_of_choices_sums_to_one() -> None:
    encoding = Encoding(Searchspace(k=("CATEGORICAL", list("abcd"))))
    cells = ((np.arange(4) + 0.5) / 4)[:, None]
    estimator = Parzen(encoding, cells[[0, 0, 2]], np.array([1.0, 2.0, 3.0]))
    assert abs(np.exp(estimator.log_density(cells)).mean() - 1.0) < 1e-9


def test_draws_follow_the_density() -> None:
    points = np.array([[0.1, 0.125, 0.1], [0.15, 0.125, 0.9], [0.8, 0.875, 0.9]])
    estimator = Parzen(MIXED, points)
    rng = np.random.default_rng(1)
    draws = estimator.sample(40_000, rng)
    uniform = MIXED.settle(rng.random((40_000, 3)))
    weights = np.exp(estimator.log_density(uniform))
    tests: list[Callable[[Floats], Booleans]] = [
        lambda rows: rows[:, 0] < 0.3,
        lambda rows: rows[:, 1] == 0.125,
        lambda rows: (rows[:, 1] > 0.8) & (rows[:, 0] > 0.5),
    ]
    for test in tests:
        assert abs(test(draws).mean() - np.average(test(uniform), weights=weights)) < 0.02


def test_without_points_everything_is_equally_likely() -> None:
    estimator = Parzen(MIXED, np.empty((0, 3)))
    draws = estimator.sample(2000, np.random.default_rng(0))
    assert np.allclose(estimator.log_density(draws), 0.0)
    assert abs((draws[:, 1] == 0.125).mean() - 0.25) < 0.05


def test_a_missing_value_neither_speaks_for_nor_against() -> None:
    encoding = Encoding(
        Searchspace(m=["a", "b"], x=("DOUBLE", [0.0, 1.0], {"when": {"m": "a"}}), y=("DOUBLE", [0.0, 1.0]))
    )
    estimator = Parzen(encoding, np.array([[0.75, np.nan, 0.3]]))
    with_x, without = np.array([[0.75, 0.9, 0.3]]), np.array([[0.75, np.nan, 0.3]])
    assert math.isclose(estimator.log_density(with_x)[0], estimator.log_density(without)[0])


def test_what_a_kernel_lacks_is_borrowed_from_one_that_has_it() -> None:
    encoding = Encoding(Searchspace(m=["a", "b"], x=("DOUBLE", [0.0, 1.0], {"when": {"m": "a"}})))
    estimator = Parzen(encoding, np.array([[0.25, 0.9]] * 3 + [[0.75, np.nan]] * 9))
    draws = estimator.sample(4000, np.random.default_rng(3))
    has_x = ~np.isnan(draws[:, 1])
    assert np.array_equal(has_x, draws[:, 0] == 0.25)
    assert (draws[has_x, 1] > 0.5).mean() > 0.7
