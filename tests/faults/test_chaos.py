"""A few schedules of random misfortunes; `make chaos` runs hundreds."""

from __future__ import annotations

import pytest

from faults.chaos import draw, play


@pytest.mark.parametrize("seed", [5, 7, 8, 104])
def test_a_search_survives_its_misfortunes(seed: int) -> None:
    verdict = play(seed)
    assert verdict.mistakes == []
    assert verdict.struck


def test_a_seed_says_everything_about_a_schedule() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)
