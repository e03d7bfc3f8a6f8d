from __future__ import annotations

import pytest

from cargobike.bench.speeds import speed_of
from cargobike.bench.summary import step_line


def test_the_mean_is_that_of_the_whole_time() -> None:
    assert speed_of([0.1, 0.3], rows=10).mean == pytest.approx(50.0)  # not (100 + 33.3) / 2


def test_one_step_has_no_scatter() -> None:
    assert speed_of([0.5], rows=10) == (20.0, 0.0, 0.0)


def test_a_single_outlier_moves_the_uncertainty_and_not_the_jitter() -> None:
    calm = speed_of([0.1] * 9 + [0.1], rows=10)
    shaken = speed_of([0.1] * 9 + [1.0], rows=10)
    assert (calm.uncertainty, calm.jitter) == (0.0, 0.0)
    assert shaken.uncertainty == pytest.approx(0.3 * 90 / 10**0.5)  # standard deviation of nine 100s and one 10
    assert shaken.jitter == 0.0


def test_jitter_is_the_scaled_median_deviation() -> None:
    assert speed_of([1 / 8, 1 / 10, 1 / 13], rows=1).jitter == pytest.approx(1.4826 * 2)


def test_lines_stand_below_each_other() -> None:
    found = {"mean": 9.0, "uncertainty": 0.0, "jitter": 0.0, "loss": 2.0}
    lines = [step_line(1, found), step_line(10_000, {**found, "mean": 123_456.0, "jitter": 9876.5})]
    assert len({line.index("images/sec") for line in lines}) == 1
    assert {line[-5:] for line in lines} == {"2.000"}
