"""Slide 15: the call of Maggy 0.1 as the slide has it, imports included."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike.compat.maggy import experiment
from cargobike.compat.maggy.randomsearch import RandomSearch
from cargobike.compat.maggy.searchspace import Searchspace


def train_fn(argument_param: float, reporter: Any) -> float:
    reporter.broadcast(argument_param)
    return argument_param


@pytest.mark.parametrize(("direction", "workers"), [("max", 2), ("min", 0)])
def test_the_call_runs_five_trials(direction: str, workers: int) -> None:
    sp = Searchspace(argument_param=("DOUBLE", [1, 5]))
    rs = RandomSearch(5, sp)
    result = experiment.launch(
        train_fn,
        sp,
        optimizer=rs,
        num_trials=5,
        name="test",
        direction=direction,
        workers=workers,
        engine="local",
        quiet=True,
    )
    assert (rs.num_trials, rs.searchspace) == (5, sp)
    assert result["num_trials"] == len(result["metric_list"]) == 5
    assert result["best_val"] == (max if direction == "max" else min)(result["metric_list"])
    assert result["avg"] == pytest.approx(sum(result["metric_list"]) / 5)
    assert (result["early_stopped"], result["failed"]) == (0, 0)
    assert 1 <= result["best_hp"]["argument_param"] <= 5


def test_an_optimizer_prepares_its_trials_as_the_library_s_own_test_expects() -> None:
    sp = Searchspace(argument_param=("DOUBLE", [1, 5]), param2=("integer", [3, 4]))
    rs = RandomSearch(5, sp, [])
    rs.initialize()
    assert len(rs.trial_buffer) == 5
    assert all(sp.as_space().contains(trial.params) for trial in rs.trial_buffer)
    assert rs.get_suggestion() is not None
