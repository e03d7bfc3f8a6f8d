"""Rungs: who is among the best, also after all have been ranked anew."""

from __future__ import annotations

import math

import pytest

from cargobike.core.records import Direction
from cargobike.search.models.rungs import Rung


@pytest.mark.parametrize(("direction", "sign"), [("min", 1.0), ("max", -1.0)])
def test_trials_can_be_ranked_anew(direction: Direction, sign: float) -> None:
    rung = Rung(3, 3, direction)
    for number in range(6):
        rung.add(number, sign * number)
        rung.wait(number)
    assert [rung.is_promotable(number) for number in range(6)] == [True, True, False, False, False, False]
    rung.go_on(0)
    rung.rank_again(lambda number: sign * (10 - number))
    assert [rung.is_promotable(number) for number in range(6)] == [False, False, False, False, True, True]
    assert rung.waiting() == [5, 4, 3, 2, 1], "one that has gone on waits no more"
    assert rung.best_waiting() == 5
    rung.add(6, sign * 6.5)
    assert not rung.is_promotable(6), "those that come later are ranked among the others"
    rung.add(7, sign * 1.0)
    assert rung.is_promotable(7)


def test_what_is_no_number_any_more_is_the_worst() -> None:
    rung = Rung(1, 2, "min")
    for number in range(4):
        rung.add(number, float(number))
    rung.rank_again(lambda number: math.nan if number == 0 else float(number))
    assert [rung.is_promotable(number) for number in range(4)] == [False, True, True, False]


def test_more_or_fewer_may_go_on_from_now_on() -> None:
    rung = Rung(3, 3, "min")
    for number in range(6):
        rung.add(number, float(number))
    assert [rung.is_promotable(number) for number in range(6)] == [True, True, False, False, False, False]
    rung.admit(2 / 3)
    assert [rung.is_promotable(number) for number in range(6)] == [True, True, True, True, False, False]
    rung.admit(1 / 6)
    assert [rung.survives(number) for number in range(6)] == [True, False, False, False, False, False]
