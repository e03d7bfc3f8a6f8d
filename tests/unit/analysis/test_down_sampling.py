"""Fewer points that look the same: what is kept, and that nothing that stands out is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.analysis.down_sampling import Method, down_sampled

METHODS: tuple[Method, ...] = ("lttb", "minmax")


@pytest.mark.parametrize("method", METHODS)
@given(
    values=st.lists(st.floats(allow_nan=True, allow_infinity=False, width=32), min_size=0, max_size=400),
    most=st.integers(3, 60),
)
def test_few_points_in_order_with_both_ends(method: Method, values: list[float], most: int) -> None:
    kept = down_sampled(np.arange(len(values), dtype=float), np.array(values, dtype=float), most, method)
    assert len(kept) <= most
    assert kept == sorted(set(kept))
    if values:
        assert (kept[0], kept[-1]) == (0, len(values) - 1)
    if len(values) <= most:
        assert kept == list(range(len(values)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spike", [1, 137, 4999, 9998])
def test_a_lonely_spike_is_kept(method: Method, spike: int) -> None:
    steps = np.arange(10_000, dtype=float)
    values = np.sin(steps / 500)
    values[spike] = 50.0
    assert spike in down_sampled(steps, values, 200, method)


def test_min_and_max_of_every_stretch_are_kept() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=5000)
    kept = down_sampled(np.arange(5000.0), values, 302, "minmax")
    assert len(kept) <= 302
    for start in range(0, 5000, 500):
        part = values[start : start + 500]
        shown = [values[index] for index in kept if start <= index < start + 500]
        assert max(shown) == part.max()
        assert min(shown) == part.min()


def test_a_gap_stays_a_gap() -> None:
    values = np.ones(1000)
    values[300:600] = math.nan
    kept = down_sampled(np.arange(1000.0), values, 40, "minmax")
    assert any(math.isnan(values[index]) for index in kept)
