"""Words for people."""

from __future__ import annotations

import math

import pytest

from cargobike.core.values.words import count, duration, number


@pytest.mark.parametrize(
    ("seconds", "exact", "running"),
    [
        (None, "–", "–"),
        (-5, "0.0 s", "0 s"),
        (0.04, "0.0 s", "0 s"),
        (9.94, "9.9 s", "9 s"),
        (9.96, "10 s", "9 s"),
        (59.6, "1 min 00 s", "59 s"),
        (3600, "1 h 00 min", "1 h 00 min"),
        (3661, "1 h 01 min", "1 h 01 min"),
        (90061, "1 d 01 h", "1 d 01 h"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float | None, exact: str, running: str) -> None:
    assert duration(seconds) == exact
    assert duration(seconds, tenths=False) == running


def test_numbers_have_six_digits() -> None:
    assert [number(value) for value in (1 / 3, math.nan, 1e-9, None)] == ["0.333333", "nan", "1e-09", "–"]


def test_counts_agree_with_their_nouns() -> None:
    assert [count(how_many, "trial") for how_many in (0, 1, 1200)] == ["0 trials", "1 trial", "1,200 trials"]
