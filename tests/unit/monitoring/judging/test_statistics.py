"""Statistics from states are what they are from the rows themselves."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cargobike.monitoring.judging.marginals import (
    jensen_shannon,
    kolmogorov_smirnov,
    population_stability,
    smoothed,
    wasserstein,
)
from cargobike.monitoring.judging.measuring import Measuring, Statistics
from cargobike.monitoring.judging.windows import window_of
from cargobike.monitoring.states.fourier import FEATURES, Fourier
from cargobike.monitoring.states.layout import Layout, NumberColumn
from cargobike.monitoring.states.learning import bandwidth_of, learn_layout
from cargobike.monitoring.states.summing import Summing


def measured(then: dict[str, Any], now: dict[str, Any]) -> tuple[Measuring, Statistics]:
    layout = learn_layout(pa.table(then), None, 1)
    summing = Summing(layout)
    measuring = Measuring(layout, window_of(summing.state_of(pa.table(then)), layout))
    return measuring, measuring.measure(window_of(summing.state_of(pa.table(now)), layout))


def test_psi_and_js_of_known_shares() -> None:
    now, then = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
    assert population_stability(now, then)[0] == pytest.approx(0.25 * np.log(2) - 0.25 * np.log(2 / 3))
    assert jensen_shannon(now, then)[0] == pytest.approx(jensen_shannon(then, now)[0])
    assert jensen_shannon(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))[0] == pytest.approx(1.0)
    assert population_stability(now, now)[0] == jensen_shannon(now, now)[0] == 0


def test_cells_that_do_not_exist_get_no_share() -> None:
    shares = smoothed(np.array([[3.0, 0.0, 0.0]]), np.array([[1.0, 1.0, 0.0]]))
    assert shares[0, 2] == 0
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", range(5))
def test_wasserstein_of_points_is_exact(seed: int) -> None:
    random = np.random.default_rng(seed)
    edges = np.arange(6.0)
    now, then = random.dirichlet(np.ones(6)), random.dirichlet(np.ones(6))
    at_now, at_then = edges + random.random(6), edges + random.random(6)
    every = np.sort(np.concatenate([at_now, at_then]))
    naive = sum(
        abs(now[at_now <= left].sum() - then[at_then <= left].sum()) * (right - left)
        for left, right in itertools.pairwise(every)
    )
    assert wasserstein(now[None], then[None], at_now[None], at_then[None])[0] == pytest.approx(naive)


@pytest.mark.parametrize("move", [0.0, 0.1, 0.7, 3.0])
def test_statistics_of_a_move_are_those_of_the_rows(move: float) -> None:
    random = np.random.default_rng(2)
    then, now = random.normal(10, 3, 20_000), random.normal(10 + 3 * move, 3, 8000)
    _, found = measured({"x": then}, {"x": now})
    every = np.sort(np.concatenate([then, now]))
    below = np.searchsorted(np.sort(now), every, "right") / 8000 - np.searchsorted(np.sort(then), every, "right") / 2e4
    assert found["ks"][0, 0] == pytest.approx(np.abs(below).max(), abs=0.03)
    assert found["wasserstein"][0, 0] == pytest.approx(np.abs(below[:-1] @ np.diff(every)) / 3, abs=0.06)
    assert found["mean"][0, 0] == pytest.approx(abs(now.mean() - then.mean()) / 3, abs=0.03)
    assert found["means"][0, 0] == pytest.approx(found["mean"][0, 0], rel=0.05, abs=0.01)


def test_ks_is_zero_for_the_same_rows() -> None:
    assert kolmogorov_smirnov(np.array([[0.3, 0.7]]), np.array([[0.3, 0.7]]))[0] == 0


def test_one_huge_value_is_far_but_does_not_hide_the_others() -> None:
    random = np.random.default_rng(2)
    now = random.normal(0, 1, 1000)
    _, found = measured({"x": random.normal(0, 1, 5000)}, {"x": np.append(now, 1e30)})
    assert found["mean"][0, 0] < 0.15
    assert found["wasserstein"][0, 0] < 0.15


def test_missing_values_and_unseen_categories_are_shares() -> None:
    then = {"x": [1.0, 2.0, 3.0, None] * 10, "c": ["a", "b"] * 20}
    measuring, found = measured(then, {"x": [1.0, None, None, None], "c": ["a", "z", None, "y"]})
    assert dict(zip(measuring.subjects("missing"), found["missing"][0], strict=True)) == {"x": 0.5, "c": 0.25}
    assert found["unseen"][0].tolist() == [0.5]


def test_a_changed_correlation_is_named_by_its_pair() -> None:
    random = np.random.default_rng(4)
    a, b, c = random.normal(size=(3, 20_000))
    now_a, noise, now_c = random.normal(size=(3, 20_000))
    now = {"a": now_a, "b": 0.6 * now_a + 0.8 * noise, "c": now_c}
    measuring, found = measured({"a": a, "b": b, "c": c}, now)
    pairs = dict(zip(measuring.subjects("correlation"), found["correlation"][0], strict=True))
    assert pairs["a × b"] == pytest.approx(0.6, abs=0.02)
    assert pairs["a × c"] == pytest.approx(0, abs=0.03)


def test_many_columns_have_no_pairs_and_are_compared_all_the_same() -> None:
    random = np.random.default_rng(4)
    _, found = measured(*({f"x{number}": random.normal(size=50) for number in range(70)} for _ in range(2)))
    assert "correlation" not in found
    assert found["mmd"].shape == (1, 2)


def test_mmd_is_that_of_a_gaussian_kernel() -> None:
    random = np.random.default_rng(6)
    columns = tuple(
        NumberColumn(name=name, type="double", centre=0.0, scale=1.0, edges=(0.0,)) for name in ("a", "b", "c")
    )
    one, other = random.normal(0, 1, (3, 400)), random.normal(0.8, 1, (3, 400))
    exact, guessed = [], []
    for width in (1.0, 0.5):
        squares = [((x[:, :, None] - y[:, None, :]) ** 2).sum(0) for x, y in ((one, one), (other, other), (one, other))]
        same, also, across = (np.exp(-square / (2 * (2 * width) ** 2)).mean() for square in squares)
        exact.append(same + also - 2 * across)
    for seed in range(20):
        fourier = Fourier(Layout(numbers=columns, categories=(), seed=seed, bandwidth=2.0))
        none = np.zeros((0, 400), np.uint8)
        apart = [fourier.of(rows.astype(np.float32), none).mean(1) for rows in (one, other)]
        halves = np.split((apart[0] - apart[1]) ** 2, 2)
        guessed.append([2 * half.mean() for half in halves])
    assert len(apart[0]) == FEATURES
    np.testing.assert_allclose(np.mean(guessed, 0), exact, rtol=0.1)


def test_the_bandwidth_is_the_median_distance() -> None:
    random = np.random.default_rng(6)
    numbers = random.normal(size=(28, 3000)).astype(np.float32)
    none = np.zeros((0, 3000), np.uint8)
    assert bandwidth_of(numbers, none, 1) == pytest.approx(np.sqrt(2 * 28), rel=0.03)
    assert bandwidth_of(numbers * 0, none, 1) == 1.0
