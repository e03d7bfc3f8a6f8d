"""Importance is held against functions whose shares of variance are known exactly."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cargobike.analysis.forest import Column, grow_forest
from cargobike.analysis.importance import Importance, importance
from cargobike.analysis.model import fit
from cargobike.core.errors import InvalidInputError
from cargobike.search.spaces.space import Searchspace
from support.sample_records import Story, lively, sampled

UNIT = ("DOUBLE", [0.0, 1.0])
Function = Callable[[dict[str, Any], random.Random], float]


def shares(space: Searchspace, function: Function, count: int = 400, seed: int = 0) -> Importance:
    return importance(sampled(space, function, count, seed=seed))


def test_shares_of_a_sum_are_the_squares_of_its_weights() -> None:
    found = shares(Searchspace(a=UNIT, b=UNIT, c=UNIT, d=UNIT), lambda p, _: 4 * p["a"] + 2 * p["b"] + p["c"])
    assert list(found.main) == ["a", "b", "c", "d"]
    for name, share in {"a": 16 / 21, "b": 4 / 21, "c": 1 / 21, "d": 0.0}.items():
        assert found.main[name] == pytest.approx(share, abs=0.06)
        assert found.total[name] == pytest.approx(share, abs=0.06)
    assert found.explained > 0.9


def test_the_ishigami_function_has_its_known_shares() -> None:
    def ishigami(p: dict[str, Any], _: random.Random) -> float:
        return float(math.sin(p["x"]) + 7 * math.sin(p["y"]) ** 2 + 0.1 * p["z"] ** 4 * math.sin(p["x"]))

    angle = ("DOUBLE", [-math.pi, math.pi])
    found = shares(Searchspace(x=angle, y=angle, z=angle), ishigami, 1000)
    for name, main, total in (("x", 0.314, 0.558), ("y", 0.442, 0.442), ("z", 0.0, 0.244)):
        assert found.main[name] == pytest.approx(main, abs=0.07)
        assert found.total[name] == pytest.approx(total, abs=0.08)
    assert next(iter(found.interactions)) == ("x", "z")
    assert found.interactions["x", "z"] == pytest.approx(0.244, abs=0.08)


def test_a_pure_interaction_has_no_main_shares() -> None:
    found = shares(Searchspace(a=UNIT, b=UNIT, c=UNIT), lambda p, _: (p["a"] - 0.5) * (p["b"] - 0.5))
    assert max(found.main.values()) < 0.1
    assert min(found.total["a"], found.total["b"]) > 0.85
    assert found.total["c"] < 0.1


def test_scales_choices_and_categories_count_as_the_space_has_them() -> None:
    worth = {"sgd": 0.0, "adam": 1.0, "lamb": 0.0}
    space = Searchspace(lr=("DOUBLE", [1e-4, 1.0], "log"), optimizer=list(worth), batch=("DISCRETE", [1, 10, 100]))
    found = shares(space, lambda p, _: math.log10(p["lr"]) / 4 + worth[p["optimizer"]])
    variances = {"lr": 1 / 12, "optimizer": 2 / 9, "batch": 0.0}
    for name, variance in variances.items():
        assert found.main[name] == pytest.approx(variance / sum(variances.values()), abs=0.06)


def test_a_parameter_that_exists_only_sometimes_counts_for_where_it_does() -> None:
    space = Searchspace(
        kind=["plain", "special"], extra=("DOUBLE", [0.0, 1.0], {"when": {"kind": "special"}}), other=UNIT
    )
    found = shares(space, lambda p, _: p.get("extra", 0.5))
    assert next(iter(found.main)) == "extra"
    assert found.total["extra"] > 0.75
    assert found.total["other"] < 0.05
    switch = shares(space, lambda p, _: 1.0 if p["kind"] == "special" else 0.0)
    assert switch.total["kind"] + switch.total["extra"] > 0.9, "the presence of extra tells the same as kind"
    assert switch.total["other"] < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_called_noise(seed: int) -> None:
    found = shares(Searchspace(a=UNIT, b=UNIT), lambda _, rng: rng.gauss(0, 1), 100, seed)
    assert found.explained < 0.2


def test_direction_makes_no_difference_and_the_same_trials_give_the_same_shares() -> None:
    def function(p: dict[str, Any], _: random.Random) -> float:
        return float(p["a"] + p["b"] * p["b"])

    space = Searchspace(a=UNIT, b=UNIT)
    up = importance(sampled(space, function, 100))
    assert up == importance(sampled(space, function, 100))
    down = importance(sampled(space, lambda p, rng: -function(p, rng), 100, direction="min"))
    for name in ("a", "b"):
        assert down.main[name] == pytest.approx(up.main[name], abs=1e-6)


@pytest.mark.parametrize(("shift", "factor"), [(1e9, 1.0), (0.0, 1e300), (0.0, 1e-300), (-5.0, -2.0)])
def test_the_unit_of_the_score_makes_no_difference(shift: float, factor: float) -> None:
    space = Searchspace(a=UNIT, b=UNIT)
    plain = shares(space, lambda p, _: 2 * p["a"] + p["b"], 100)
    other = shares(space, lambda p, _: shift + factor * (2 * p["a"] + p["b"]), 100)
    for name in ("a", "b"):
        assert other.main[name] == pytest.approx(plain.main[name], abs=1e-3)
    model = fit(sampled(space, lambda p, _: shift + factor * p["a"], 100))
    ends = model.mean_over_others(["a"], [np.array([0.05, 0.95])])
    assert (ends - shift) / factor == pytest.approx([0.05, 0.95], abs=0.1)


def test_one_diverged_trial_does_not_take_everything() -> None:
    def function(p: dict[str, Any], _: random.Random) -> float:
        return 1e12 if 0.5 < p["b"] < 0.51 else float(p["a"])

    record = sampled(Searchspace(a=UNIT, b=UNIT), function, 150)
    assert sum(trial.value == 1e12 for trial in record.trials.values()) in range(1, 5)
    assert importance(record).main["a"] > 0.6


def test_a_step_makes_stopped_trials_count() -> None:
    record = lively(60)
    assert importance(record, step=1).trials > importance(record).trials
    assert "from" in str(importance(record, step=1))


def test_too_few_trials_and_nothing_that_varies_are_refused() -> None:
    with pytest.raises(
        InvalidInputError, match=r"4 trials have a score \(value\); this needs at least 10\. With step=…"
    ):
        importance(sampled(Searchspace(a=UNIT), lambda p, _: p["a"], 4))
    with pytest.raises(InvalidInputError, match=r"0 trials have a score \(accuracy at step 99\)"):
        importance(lively(30), step=99)
    story = Story()
    for _ in range(12):
        story.complete(story.start({"a": 1}), 1.0)
    with pytest.raises(InvalidInputError, match="no parameter has more than one value"):
        importance(story.end())


def test_a_constant_score_has_no_variance_to_divide() -> None:
    found = shares(Searchspace(a=UNIT, b=UNIT), lambda p, _: 1.0, 20)
    assert found.main == {"a": 0.0, "b": 0.0}


def test_leaves_cover_the_space_exactly_once() -> None:
    rng = np.random.default_rng(1)
    inputs = np.column_stack([rng.random(300), rng.integers(0, 4, 300)])
    weights = (0.1, 0.2, 0.3, 0.4)
    forest = grow_forest(inputs, inputs[:, 0] * inputs[:, 1] + rng.random(300), [Column(), Column(weights)])
    for tree in forest.trees:
        sizes = (tree.high - tree.low)[:, 0] * (tree.members[1] @ np.array(weights))
        assert sizes.sum() == pytest.approx(1.0)
        assert len(tree.values) > 10


def test_the_mean_over_all_others_is_the_mean_over_all_others() -> None:
    space = Searchspace(a=UNIT, b=UNIT, c=["x", "y"])
    model = fit(sampled(space, lambda p, _: p["a"] + 10 * p["b"] + (5 if p["c"] == "y" else 0), 600))
    grid = np.linspace(0.05, 0.95, 10)
    assert model.mean_over_others(["b"], [grid]) == pytest.approx(10 * grid + 3, abs=0.8)
    table = model.mean_over_others(["b", "c"], [grid, np.array([0.0, 1.0])])
    assert table[:, 1] - table[:, 0] == pytest.approx(np.full(10, 5.0), abs=1.2)
