"""What a random search finds is known without searching, and others are placed beside that."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "search"))

import quality_chance
from quality_chance import Chance, chances, compare_with_chance
from quality_problems import Problem
from quality_running import SHARES, SYSTEMS, search
from quality_statistics import FLOOR

from cargobike import Searchspace

RANDOM = next(system for system in SYSTEMS if system.name == "randomsearch")
LISTED = Problem(
    "listed",
    "curves",
    Searchspace(place=("DISCRETE", list(range(1, 61)))),
    lambda params: [float(params["place"])] * 27,
    True,
    0.0,
    30.0,
)
DRAWN = Problem(
    "drawn", "curves", Searchspace(place=("DOUBLE", [0.0, 1.0])), lambda params: [params["place"]] * 27, True, 0.0, 0.5
)
LEVEL = Chance([0.1, 0.2, 0.3, 0.4], [0.25] * 4, math.inf)


def test_the_least_of_some_draws_without_repetition_has_a_formula() -> None:
    half = chances(LISTED)[0.5]
    assert math.fsum(half.weights) == pytest.approx(1)
    assert half.weights[0] == pytest.approx(20 / 60)  # 20 trainings have ended by then
    assert half.weights[1] == pytest.approx(40 / 60 * 20 / 59)
    assert half.searches == math.inf


def test_the_formula_is_what_the_searches_of_random_search_show() -> None:
    found = [search(RANDOM, LISTED, seed)[1] for seed in range(300)]
    assert math.fsum(map(chances(LISTED)[0.5].place, found)) / 300 == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("problem", [LISTED, DRAWN], ids=lambda problem: problem.name)
def test_a_draw_is_a_search_without_the_scheduler(problem: Problem) -> None:
    drawn = quality_chance._drawn(problem, 5, [8, 20, 40])
    assert list(drawn.values()) == search(RANDOM, problem, 5)[: len(SHARES)]


def test_what_cannot_be_listed_is_drawn_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality_chance, "DRAWN", 200)
    full = chances(DRAWN)[1.0]
    assert (len(full.regrets), full.searches) == (200, 200)
    assert math.fsum(full.regrets) / 200 == pytest.approx(2 / 41, rel=0.2)


def test_a_regret_has_a_place_among_random_ones() -> None:
    assert [LEVEL.place(regret) for regret in (0.05, 0.1, 0.25, 0.4, 0.5)] == [0.0, 0.125, 0.5, 0.875, 1.0]
    assert LEVEL.variance == pytest.approx((1 - 4 / 64) / 12)
    assert Chance([FLOOR, 1.0], [0.5, 0.5], math.inf).place(0.0) == 0.25


def test_searches_like_random_ones_are_seldom_called_better_or_worse() -> None:
    source, called = random.Random(1), 0
    for _ in range(400):
        ours = {name: source.choices(LEVEL.regrets, k=20) for name in ("a", "b")}
        one = compare_with_chance("both", 0.5, "auto", ours, {"a": LEVEL, "b": LEVEL})
        called += min(one.p_better, one.p_worse) < 0.05
    assert 0.05 < called / 400 < 0.15  # one in ten, on both sides together


def test_those_that_are_ahead_as_often_as_not_are_neither() -> None:
    # Nothing but extremes: a test that knew only what chance does would take less than this for a difference.
    source, called = random.Random(2), 0
    for _ in range(400):
        ours = {"a": source.choices([0.05, 0.5], k=20)}
        one = compare_with_chance("one", 0.5, "auto", ours, {"a": LEVEL})
        called += min(one.p_better, one.p_worse) < 0.05
    assert called / 400 < 0.15


@pytest.mark.parametrize(("regret", "verdict"), [(0.1, "p_better"), (0.4, "p_worse")])
def test_those_that_are_clearly_ahead_or_behind_are_called_so(regret: float, verdict: str) -> None:
    one = compare_with_chance("one", 1.0, "auto", {"a": [regret] * 20}, {"a": LEVEL})
    assert getattr(one, verdict) < 1e-6
    assert one.pairs == 20
    assert one.ratio == pytest.approx(regret / LEVEL.mean)
