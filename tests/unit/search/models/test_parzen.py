"""Parzen estimators: what is drawn has the density that is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

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


def test_both_edges_are_treated_alike() -> None:
    grid = ((np.arange(500) + 0.5) / 500)[:, None]
    for points in ([0.03], [0.0, 0.1], [0.02, 0.05, 0.3]):
        below = np.array(points)[:, None]
        density = Parzen(LINE, below).log_density(grid)
        mirrored = Parzen(LINE, 1.0 - below).log_density(1.0 - grid)
        np.testing.assert_allclose(density, mirrored, atol=1e-6)


def test_kernels_narrow_as_points_get_more_and_closer() -> None:
    def peak(points: list[float]) -> float:
        return float(np.exp(Parzen(LINE, np.array(points)[:, None]).log_density(np.array([[0.5]])))[0])

    assert peak([0.5]) < peak([0.5] * 4) < peak([0.5] * 16)
    assert peak([0.3, 0.5, 0.7]) < peak([0.45, 0.5, 0.55])


# -- against the formulas, one number at a time ----------------------------------------------------------------------

BRANCHES = Encoding(
    Searchspace(
        m=["a", "b"],
        x=("DOUBLE", [0.0, 1.0], {"when": {"m": "a"}}),
        k=("CATEGORICAL", list("uvw"), {"when": {"m": "b"}}),
        n=("INTEGER", [1, 20]),
        one=("CATEGORICAL", ["only"]),
    )
)
NONE = math.nan
SIXTH = (np.arange(3) + 0.5) / 3


def width_of(points: list[float], count: float) -> float:
    """The width of the kernels of one column."""
    n = len(points)
    middle = sum(points) / max(n, 1)
    spread = math.sqrt((sum((point - middle) ** 2 for point in points) + 1 / 12) / (n + 1))
    return min(max(0.6 * spread * math.pow(max(n, 1), -0.2), 0.02, 0.4 / count), 1.0)


def below(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def factor_of(encoding: Encoding, j: int, column: list[float], point: float, place: float) -> float:
    """What a column of a kernel contributes to the density at a place."""
    if math.isnan(point) or math.isnan(place):
        return 1.0
    known = [value for value in column if not math.isnan(value)]
    if encoding.is_choice[j]:
        count = int(encoding.counts[j])
        change = (count - 1) / (len(known) + count)
        return (1.0 - change) * count if point == place else change * count / (count - 1)
    width = width_of(known, float(encoding.counts[j]))
    inside = below((1 - point) / width) - below(-point / width)
    return math.exp(-0.5 * ((place - point) / width) ** 2) / math.sqrt(2 * math.pi) / width / inside


def expected(
    encoding: Encoding, points: list[list[float]], row: list[float], weights: list[float], prior: float
) -> float:
    """The logarithm of a density, as its definition says."""
    total = prior + len(points)
    density = prior / total
    for point, weight in zip(points, weights, strict=True):
        kernel = weight * len(points) / sum(weights) / total
        for j, (value, place) in enumerate(zip(point, row, strict=True)):
            kernel *= factor_of(encoding, j, [other[j] for other in points], value, place)
        density += kernel
    return math.log(density)


@pytest.mark.parametrize(
    ("encoding", "points", "rows"),
    [
        (LINE, [[0.2]], [[0.2], [0.0], [1.0]]),
        (LINE, [[0.0], [0.05], [0.9], [0.97]], [[0.0], [0.04], [0.5], [0.99], [1.0]]),
        (LINE, [[0.5]] * 400, [[0.5], [0.55], [0.8]]),
        (MIXED, [[0.1, 0.125, 0.1], [0.15, 0.125, 0.9], [0.8, 0.875, 0.9]], [[0.1, 0.125, 0.1], [0.7, 0.375, 0.5]]),
        (
            BRANCHES,
            [[0.25, 0.1, NONE, 0.3, 0.5], [0.25, 0.7, NONE, 0.9, 0.5], [0.75, NONE, SIXTH[1], 0.1, 0.5]],
            [
                [0.25, 0.2, NONE, 0.3, 0.5],
                [0.25, 0.95, NONE, 0.3, 0.5],
                [0.75, NONE, SIXTH[1], 0.7, 0.5],
                [0.75, NONE, SIXTH[2], 0.1, 0.5],
            ],
        ),
        (BRANCHES, [[0.25, 0.1, NONE, 0.3, 0.5]], [[0.25, 0.2, NONE, 0.3, 0.5]]),
        (BRANCHES, [[0.25, 0.1, SIXTH[0], 0.3, 0.5]], [[0.75, NONE, SIXTH[0], 0.3, 0.5], [0.75, NONE, NONE, 0.5, 0.5]]),
        (BRANCHES, [[0.75, NONE, SIXTH[0], 0.3, 0.5]], [[0.75, 0.5, SIXTH[0], 0.3, 0.5], [0.25, 0.1, 0.5, 0.5, 0.5]]),
    ],
)
@pytest.mark.parametrize("prior", [1.0, 0.25])
def test_the_density_is_what_its_definition_says(
    encoding: Encoding, points: list[list[float]], rows: list[list[float]], prior: float
) -> None:
    for weights in ([1.0] * len(points), [1.0 + number for number in range(len(points))]):
        estimator = Parzen(encoding, np.array(points), np.array(weights), prior)
        plain = Parzen(encoding, np.array(points), prior=prior)
        given = estimator.log_density(np.array(rows))
        assert given.shape == (len(rows),)
        assert given == pytest.approx([expected(encoding, points, row, weights, prior) for row in rows], abs=4e-3)
        one_by_one = [float(plain.log_density(np.array([row]))[0]) for row in rows]
        assert one_by_one == pytest.approx(plain.log_density(np.array(rows)))
        if len(set(weights)) == 1:
            assert one_by_one == pytest.approx(given)


@pytest.mark.parametrize("point", [0.0, 0.3, 0.98])
def test_a_draw_lies_where_its_kernel_says(point: float) -> None:
    estimator = Parzen(LINE, np.array([[point]] * 6), prior=1e-9)
    draws = np.sort(estimator.sample(20_000, np.random.default_rng(5))[:, 0])
    width = width_of([point] * 6, math.inf)
    low, high = below(-point / width), below((1 - point) / width)
    for share in (0.1, 0.5, 0.9):
        here = float(np.quantile(draws, share))
        assert (below((here - point) / width) - low) / (high - low) == pytest.approx(share, abs=0.02)


def test_a_choice_is_kept_or_changed_to_any_other_alike() -> None:
    encoding = Encoding(Searchspace(k=("CATEGORICAL", list("abcd")), one=("CATEGORICAL", ["only"])))
    estimator = Parzen(encoding, np.array([[0.375, 0.5]] * 2), prior=1e-9)
    draws = estimator.sample(30_000, np.random.default_rng(2))
    assert set(draws[:, 1]) == {0.5}
    shares = [float((draws[:, 0] == (choice + 0.5) / 4).mean()) for choice in range(4)]
    assert shares == pytest.approx([1 / 6, 3 / 6, 1 / 6, 1 / 6], abs=0.015), "a change in 3 of 2 + 4"


def test_what_no_kernel_has_is_left_to_chance_as_often_as_to_one() -> None:
    encoding = Encoding(Searchspace(m=["a", "b"], x=("DOUBLE", [0.0, 1.0], {"when": {"m": "a"}})))
    estimator = Parzen(encoding, np.array([[0.75, NONE]] * 30 + [[0.25, 0.99]]), prior=1e-9)
    has = np.zeros((10_000, 2), dtype=np.bool_)
    has[:, 0] = True
    middle = np.full((10_000, 2), 0.5)
    filled = estimator._borrow(has, middle, np.random.default_rng(4))
    assert filled[:, 0].all()
    assert filled[:, 1].mean() == pytest.approx(0.5, abs=0.03)
    assert (middle[filled[:, 1], 1] == 0.99).all()
    assert (middle[~filled[:, 1], 1] == 0.5).all()


class Constrained(Encoding):
    """An encoding that counts how often it was asked, and calls the first rows of each question broken."""

    def __init__(self, broken: list[int]) -> None:
        super().__init__(LINE.space)
        self.is_constrained = True
        self.answers = list(broken)
        self.asked: list[Floats] = []

    def broken(self, rows: Floats) -> Booleans:
        self.asked.append(rows.copy())
        count = self.answers.pop(0)
        return np.arange(len(rows)) < count


def test_rows_that_break_constraints_are_drawn_again_and_the_others_kept() -> None:
    encoding = Constrained([3, 1, 0])
    rows = Parzen(encoding, np.array([[0.5]])).sample(5, np.random.default_rng(0))
    first, second, third = encoding.asked
    assert (second[:3] != first[:3]).all()
    assert (second[3:] == first[3:]).all()
    assert second[0] != third[0]
    assert (third[1:] == second[1:]).all()
    assert (rows == third).all()
    hopeless = Constrained([5] * 9)
    rows = Parzen(hopeless, np.array([[0.5]])).sample(5, np.random.default_rng(0))
    assert len(hopeless.asked) == 4
    assert (rows != hopeless.asked[-1]).all()
