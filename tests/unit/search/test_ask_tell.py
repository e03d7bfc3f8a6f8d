"""Ask and tell: the caller's loop, the optimizer's choices."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cargobike import Search
from cargobike.core.errors import InvalidInputError, NotFoundError, SpaceError
from cargobike.core.records import Decision, Trial, TrialState
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.randomsearch import RandomSearch
from support.functions import PLANE, branin


def asked(search: Search) -> Trial:
    trial = search.ask()
    assert trial is not None
    return trial


@pytest.mark.parametrize("optimizer", ["tpe", "de", "random", RandomSearch, RandomSearch()])
def test_a_loop_finds_the_minimum(optimizer: Any) -> None:
    search = Search(PLANE, optimizer, direction="min", seed=3)
    for _ in range(60):
        trial = asked(search)
        search.tell(trial, branin(trial.params))
    assert search.best is not None
    assert search.best.value == min(trial.value for trial in search.trials if trial.value is not None)
    assert search.best.value < 5.0
    assert [trial.number for trial in search.trials] == list(range(60))


def test_the_same_seed_and_calls_give_the_same_trials() -> None:
    def run(sign: int) -> list[Any]:
        search = Search(PLANE, direction="min" if sign > 0 else "max", seed=5)
        waiting: list[Trial] = []
        for turn in range(30):
            waiting.append(asked(search))
            if turn % 3:
                trial = waiting.pop(0)
                search.tell(trial.number, sign * branin(trial.params))
        return [trial.params for trial in search.trials]

    assert run(1) == run(1) == run(-1)
    assert Search(PLANE).seed != Search(PLANE).seed


def test_a_failed_trial_is_told_by_its_error() -> None:
    search = Search({"x": [1, 2, 3]}, "random", seed=0)
    trial = asked(search)
    search.tell(trial, error="out of memory")
    assert (trial.state, trial.value, trial.error) == (TrialState.FAILED, None, "out of memory")
    search.tell(asked(search), math.nan)
    assert not search.best
    last = asked(search)
    search.tell(last, 1, metrics={"loss": 2})
    assert search.best is last
    assert last.metrics == {"loss": 2.0}


def test_the_end_is_said_once_and_for_all() -> None:
    search = Search({"x": [1, 2]}, "grid")
    assert [asked(search).params["x"], asked(search).params["x"]] == [1, 2]
    assert search.ask() is None
    assert search.is_done
    assert search.ask() is None
    limited = Search(PLANE, num_trials=2)
    assert asked(limited) is not asked(limited)
    assert limited.ask() is None
    assert limited.is_done


def test_an_optimizer_may_stop_and_pause_by_what_is_reported() -> None:
    search = Search({"x": ("DOUBLE", [0.0, 1.0])}, ASHA(resource_max=9, variant="promotion"), num_trials=9, seed=1)
    states: dict[int, int] = {}
    while (trial := search.ask()) is not None:
        step = states.get(trial.number, 0)
        decision = Decision.CONTINUE
        while step < 9 and decision is Decision.CONTINUE:
            step += 1
            decision = search.report(trial, trial.params["x"] * step, step)
        states[trial.number] = step
        if decision is Decision.CONTINUE:
            search.tell(trial, trial.params["x"] * step)
    assert search.is_done
    completed = [trial for trial in search.trials if trial.state is TrialState.COMPLETED]
    assert 0 < len(completed) < 9
    assert search.best is max(search.trials, key=lambda trial: float(trial.params["x"]))
    assert any(trial.attempts > 1 for trial in search.trials)


def test_a_stopped_trial_has_ended() -> None:
    search = Search({"x": ("DOUBLE", [0.0, 1.0])}, ASHA(resource_max=9, variant="stopping"), seed=1)
    good, bad = asked(search), asked(search)
    assert search.report(good, 1.0, 1) is Decision.CONTINUE
    assert search.report(bad, 0.0, 1) is Decision.STOP
    assert (bad.state, bad.value) == (TrialState.STOPPED, None)
    with pytest.raises(InvalidInputError, match="trial 1 is not running but stopped"):
        search.tell(bad, 0.0)


def test_known_results_can_be_added() -> None:
    search = Search(PLANE, direction="min", seed=2)
    for x in range(-5, 11):
        search.add({"x": x, "y": 2.0}, branin({"x": x, "y": 2.0}))
    assert asked(search).info["by"] == "model"
    with pytest.raises(SpaceError, match="y: is missing"):
        search.add({"x": 1.0}, 0.0)


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidInputError, match="direction='up'"):
        Search(PLANE, direction="up")  # type: ignore[arg-type]
    search = Search(PLANE)
    with pytest.raises(NotFoundError, match="no trial 3; 0 have been asked for"):
        search.tell(3, 1.0)
    trial = asked(search)
    with pytest.raises(InvalidInputError, match="either value=… or error=…"):
        search.tell(trial)
    with pytest.raises(InvalidInputError, match="either value=… or error=…"):
        search.tell(trial, 1.0, error="both")
    search.tell(trial, 1.0)
    with pytest.raises(InvalidInputError, match="trial 0 is not running but completed"):
        search.tell(trial, 1.0)


def test_what_the_caller_does_to_a_trial_does_not_reach_the_optimizer() -> None:
    search = Search({"x": ("DOUBLE", [0.0, 1.0])}, "random", seed=0)
    trial = asked(search)
    trial.params["x"] = 7.0
    assert search.optimizer.trials[0].params["x"] != 7.0


def test_what_is_no_number_leaves_the_trial_open() -> None:
    search = Search(PLANE, "random", seed=1)
    trial = asked(search)
    with pytest.raises(InvalidInputError, match="value must be a number, got"):
        search.tell(trial, "good")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="value must be a number, got"):
        search.report(trial, "good", step=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="a trial, or its number, is needed"):
        search.tell("0", 1.0)  # type: ignore[arg-type]
    search.tell(trial, 1.0)
    assert search.best is not None
