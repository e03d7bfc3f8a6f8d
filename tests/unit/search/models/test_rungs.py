"""Rungs: how many of those that got there are better than a score."""

from __future__ import annotations

import math

import pytest

from cargobike.core.records import Direction
from cargobike.search.models.rungs import Rung


@pytest.mark.parametrize(("direction", "sign"), [("min", 1.0), ("max", -1.0)])
def test_the_share_of_better_ones(direction: Direction, sign: float) -> None:
    rung = Rung(3, 3, direction)
    for number, value in enumerate((0.1, 0.2, 0.3, math.nan)):
        rung.add(number, sign * value)
    assert [rung.share_better(sign * value) for value in (0.05, 0.1, 0.15, 0.25, 0.9)] == [0, 0, 0.25, 0.5, 0.75]


def test_what_is_no_number_is_worse_than_all() -> None:
    rung = Rung(1, 3, "min")
    assert rung.share_better(1.0) == 1.0, "nobody to compare with says nothing good"
    rung.add(0, 5.0)
    assert rung.share_better(math.nan) == rung.share_better(math.inf) == 1.0
