"""How fast trials draw rows, from what their workers say."""

from __future__ import annotations

import math

import pytest

from cargobike.experiments.driving.data_pace import FORGET_AFTER_S, DataPaces
from cargobike.experiments.trial.messages import Drawn
from cargobike.experiments.usage import DataPace


def test_a_pace_is_what_was_drawn_since_the_worker_last_spoke() -> None:
    paces = DataPaces()
    assert paces.total(0.0) is None
    paces.note("w1", 0, 1, Drawn(2.0, 100, 1.0), 0.0)
    assert paces.of("w1", 0, 1) == DataPace(50.0, 0.5)
    paces.note("w1", 0, 1, Drawn(3.0, 400, 1.25), 1.0)
    assert paces.of("w1", 0, 1) == DataPace(300.0, 0.25)
    assert paces.of("w1", 0, 2) is None
    paces.note("w2", 1, 1, Drawn(1.0, 100, 0.75), 1.0)
    assert paces.total(1.0) == DataPace(400.0, 0.5)
    paces.ended("w1")
    assert paces.total(1.0) == DataPace(100.0, 0.75)
    assert paces.total(1.0 + FORGET_AFTER_S) is None


def test_another_attempt_begins_anew() -> None:
    paces = DataPaces()
    paces.note("w", 0, 1, Drawn(9.0, 900, 0.0), 0.0)
    paces.note("w", 0, 2, Drawn(1.0, 10, 0.5), 1.0)
    assert paces.of("w", 0, 2) == DataPace(10.0, 0.5)


@pytest.mark.parametrize("nonsense", [Drawn(math.nan, 1, 0.0), Drawn(1.0, 1, math.inf), Drawn(1.0, -1, 0.0)])
def test_nonsense_is_passed_over(nonsense: Drawn) -> None:
    paces = DataPaces()
    paces.note("w", 0, 1, nonsense, 0.0)
    assert paces.total(0.0) is None
    paces.note("w", 0, 1, Drawn(2.0, 4, 5.0), 0.0)
    paces.note("w", 0, 1, Drawn(1.0, 2, 9.0), 0.0)
    assert paces.of("w", 0, 1) == DataPace(2.0, 1.0), "shares stay shares, and time does not run backwards"
