"""Workers wait neither for each other nor for a slow optimizer."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cargobike import AbstractOptimizer, Searchspace, Trial, experiment, trial
from cargobike.core.records import Decision


def test_a_slow_trial_keeps_nobody_waiting(tmp_path: Path) -> None:
    def train(x: int) -> float:
        if x == 0:
            while not (tmp_path / "done-11").exists():
                time.sleep(0.01)
        (tmp_path / f"done-{x}").touch()
        return x

    result = experiment.launch(train, {"x": list(range(12))}, workers=2, trial_timeout_s=60, quiet=True)
    assert result.counts == {"completed": 12}
    ended = sorted(result.trials, key=lambda trial: trial.ended_at or 0.0)
    assert 0 in {trial.number for trial in ended[-2:]}


def test_trials_run_side_by_side(tmp_path: Path) -> None:
    def train(x: int) -> float:
        (tmp_path / f"here-{x}").touch()
        while len(list(tmp_path.glob("here-*"))) < 3:
            time.sleep(0.01)
        return x

    result = experiment.launch(train, {"x": [0, 1, 2]}, workers=3, trial_timeout_s=60, quiet=True)
    assert result.counts == {"completed": 3}


class _Slow(AbstractOptimizer):
    """Takes its time for each suggestion, and leaves a file with its number in a folder when it has made it."""

    def __init__(self, pause_s: float, folder: Path) -> None:
        self.pause_s = pause_s
        self.folder = folder

    def initialize(self) -> None:
        self.count = 0

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        time.sleep(self.pause_s)
        self.count += 1
        (self.folder / f"{self.count}").touch()
        return {"x": float(self.count)}


def test_a_slow_optimizer_is_asked_ahead(tmp_path: Path) -> None:
    optimizer = _Slow(0.3, tmp_path)

    def train(x: float) -> float:
        # Each suggestion but the first is there before its worker is free.
        deadline = time.monotonic() + 20
        while x < 6 and not (tmp_path / f"{x + 1:.0f}").exists():
            assert time.monotonic() < deadline, "no suggestion was made while this trial ran"
            time.sleep(0.01)
        return x

    result = experiment.launch(
        train,
        Searchspace(x=("DOUBLE", [0, 99])),
        optimizer=optimizer,
        num_trials=6,
        workers=1,
        isolation="reuse",
        quiet=True,
    )
    assert result.counts == {"completed": 6}
    assert [trial.value for trial in result.trials] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


class _Blocks(AbstractOptimizer):
    """Does not answer a question before something else has happened, which must not depend on the answer."""

    def __init__(self, *, warm_up: int, happened: threading.Event) -> None:
        self.warm_up = warm_up
        self.happened = happened
        self.waited_in_vain = False

    def initialize(self) -> None:
        self.count = 0

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        self.count += 1
        time.sleep(0.02)
        if self.count > self.warm_up and not self.happened.wait(20):
            self.waited_in_vain = True
        return {"x": float(self.count)}


class _Tells:
    def __init__(self, fact: str, count: int, happened: threading.Event) -> None:
        self.fact, self.count, self.happened = fact, count, happened

    def on_facts(self, facts: Sequence[Any]) -> None:
        self.count -= sum(type(fact).__name__ == self.fact for fact in facts)
        if self.count <= 0:
            self.happened.set()


@pytest.mark.parametrize("fact", ["Reported", "TrialEnded"])
def test_reports_and_results_arrive_while_the_optimizer_thinks(fact: str, tmp_path: Path) -> None:
    happened = threading.Event()
    optimizer = _Blocks(warm_up=3, happened=happened)

    def train(x: float) -> float:
        for step in range(10):
            trial.report(score=x, step=step)
        return x

    experiment.launch(
        train,
        Searchspace(x=("DOUBLE", [0, 99])),
        optimizer=optimizer,
        num_trials=6,
        workers=2,
        callbacks=[_Tells(fact, 30 if fact == "Reported" else 3, happened)],
        quiet=True,
    )
    assert not optimizer.waited_in_vain


def test_a_stop_rule_decides_while_the_optimizer_thinks() -> None:
    happened = threading.Event()
    optimizer = _Blocks(warm_up=3, happened=happened)

    class AtStepFive:
        def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: str) -> Decision:
            return Decision.STOP if step == 5 else Decision.CONTINUE

    def train(x: float) -> float:
        for step in range(10):
            trial.report(score=x, step=step)
        return x

    result = experiment.launch(
        train,
        Searchspace(x=("DOUBLE", [0, 99])),
        optimizer=optimizer,
        num_trials=5,
        workers=2,
        early_stop=AtStepFive(),
        callbacks=[_Tells("TrialEnded", 3, happened)],
        quiet=True,
    )
    assert result.counts == {"stopped": 5}
    assert not optimizer.waited_in_vain


def test_a_time_budget_ends_a_search_without_a_number() -> None:
    result = experiment.launch(
        lambda x: x, Searchspace(x=("DOUBLE", [0, 1])), timeout_s=3.0, workers=2, isolation="reuse", quiet=True
    )
    assert result.state == "completed"
    assert "3 s" in result.reason
    assert result.counts.get("completed", 0) > 5


@pytest.mark.parametrize("workers", [1, 3])
def test_a_deterministic_search_repeats_itself_whatever_the_timing(workers: int) -> None:
    class Learns(AbstractOptimizer):
        def initialize(self) -> None:
            pass

        def get_suggestion(self, trial: Trial | None = None) -> Any:
            known = sum(trial.value or 0.0 for trial in self.final_store)
            return {"x": self.rng.random() + known, "nap": self.rng.choice([0.0, 0.02, 0.05])}

    def train(x: float, nap: float) -> float:
        import random

        time.sleep(nap * random.SystemRandom().random())
        return x

    space = Searchspace(x=("DOUBLE", [0, 1e9]), nap=("DOUBLE", [0, 1]))
    runs = [
        experiment.launch(
            train, space, optimizer=Learns(), num_trials=10, workers=workers, seed=5, deterministic=True, quiet=True
        )
        for _ in range(2)
    ]
    first, second = ([(ended.params, ended.seed) for ended in run.trials] for run in runs)
    assert first == second
