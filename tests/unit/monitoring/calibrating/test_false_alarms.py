"""The rate of false alarms is the one that was asked for, at every size, and shifts are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cargobike.monitoring import Reference
from cargobike.monitoring.calibrating.calibration import calibrated_size
from cargobike.monitoring.calibrating.null_windows import drawn_rows

Make = Callable[[int, np.random.Generator], dict[str, Any]]


def mixed(rows: int, random: np.random.Generator) -> dict[str, Any]:
    """Return columns as people have them: skewed, heavy, rare, whole numbers, categories, missing values."""
    rare = random.random(rows) < 0.0005
    gaps = random.normal(size=rows)
    gaps[random.random(rows) < 0.001] = np.nan
    return {
        "normal": random.normal(size=rows),
        "skewed": random.lognormal(0, 2, rows),
        "heavy": random.standard_cauchy(rows),
        "rare": rare.astype(float),
        "count": random.poisson(1.5, rows),
        "gaps": gaps,
        "constant": np.full(rows, 7),
        "city": random.choice(["Oslo", "Rome", "Bonn"], rows, p=[0.6, 0.3, 0.1]),
        "word": np.char.add("w", random.zipf(1.8, rows).clip(max=10**6).astype(str)),
    }


def normal(columns: int) -> Make:
    return lambda rows, random: {f"f{place}": random.normal(size=rows) for place in range(columns)}


def alarms(reference: Reference, make: Make, rows: int, windows: int, random: np.random.Generator) -> float:
    return float(np.mean([reference.judge(pa.table(make(rows, random))).alarm for _ in range(windows)]))


@pytest.mark.parametrize(
    ("make", "reference_rows", "rows"),
    [
        pytest.param(mixed, 20_000, 300, id="columns of all kinds"),
        pytest.param(mixed, 20_000, 3, id="three rows"),
        pytest.param(mixed, 20_000, 1034, id="a size between those that are calibrated"),
        pytest.param(normal(6), 500, 400, id="a small reference"),
    ],
)
def test_false_alarms_are_as_many_as_were_asked_for(make: Make, reference_rows: int, rows: int) -> None:
    random = np.random.default_rng(11)
    rates = []
    for seed in range(2):  # a small reference is itself far from the truth, one more than another
        reference = Reference(make(reference_rows, random), window=rows, seed=seed)
        rates.append(alarms(reference, make, rows, 200, random))
    assert np.mean(rates) < 0.09, rates
    if rows > 3:  # few rows have few different outcomes, so that the rate can only stay below
        assert np.mean(rates) > 0.015, rates


def test_a_window_larger_than_the_reference_keeps_the_rate_over_references() -> None:
    random = np.random.default_rng(15)
    make = normal(3)
    judged = []
    for seed in range(40):  # one reference is nearly always right or nearly always wrong: it is itself the chance
        reference = Reference(make(200, random), window=2000, seed=seed)
        judged.append(alarms(reference, make, 2000, 3, random))
    assert np.mean(judged) < 0.15, judged


def test_28_columns_keep_the_rate_and_find_small_shifts() -> None:
    random = np.random.default_rng(12)
    make = normal(28)
    reference = Reference(make(100_000, random), window=1000)
    assert 0.03 <= alarms(reference, make, 1000, 1000, random) <= 0.07

    def moved(rows: int, random: np.random.Generator) -> dict[str, Any]:
        return {name: values + 0.1 * (place < 3) for place, (name, values) in enumerate(make(rows, random).items())}

    def bound(rows: int, random: np.random.Generator) -> dict[str, Any]:
        columns = make(rows, random)
        columns["f1"] = 0.6 * columns["f0"] + 0.8 * columns["f1"]
        return columns

    assert alarms(reference, moved, 1000, 200, random) >= 0.85
    assert alarms(reference, bound, 1000, 100, random) >= 0.95


def test_a_lower_rate_gives_fewer_alarms() -> None:
    random = np.random.default_rng(13)
    table = normal(4)(5000, random)
    strict, loose = (Reference(table, window=100, false_alarms=rate) for rate in (0.01, 0.5))
    windows = [pa.table(normal(4)(100, random)) for _ in range(60)]
    assert sum(strict.judge(window).alarm for window in windows) <= 4
    assert 15 <= sum(loose.judge(window).alarm for window in windows) <= 45


def test_what_depends_on_all_columns_is_found_without_any_of_them() -> None:
    random = np.random.default_rng(14)

    def ring(rows: int, is_ring: bool) -> dict[str, Any]:
        signs = random.choice([-1.0, 1.0], (3, rows))
        if is_ring:
            signs[2] = signs[0] * signs[1]  # each two are independent, all three are not
        return dict(zip("abc", signs + random.normal(0, 0.2, (3, rows)), strict=True))

    reference = Reference(ring(20_000, False), window=1000)
    judgement = reference.judge(ring(1000, True))
    assert judgement.alarm
    assert [shift.is_certain for shift in judgement.features] == [False] * 3
    assert min(figure.probability for figure in judgement.statistics["mmd"].values()) <= 0.05
    assert "all columns together" in repr(judgement)


def test_sizes_at_which_windows_are_calibrated() -> None:
    assert [calibrated_size(rows) for rows in (1, 50, 51, 104, 105, 1049, 99_999)] == [1, 50, 51, 100, 100, 1000, 10**5]
    assert drawn_rows(1000, 1000) == 500
    assert drawn_rows(1, 20) == 1
    assert drawn_rows(1000, 10**9) == 1000
