"""Workers that have trials in advance: what each prints is its own, and no loss or slow trial harms the others."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from cargobike import Searchspace, experiment, trial
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.results.result import Result
from support.watching import ancestors

COUNT = 400


def search(train: Any, count: int = COUNT, **settings: Any) -> Result:
    return experiment.launch(
        train,
        Searchspace(x=("DOUBLE", [0, 1])),
        optimizer="randomsearch",
        num_trials=count,
        isolation="reuse",
        quiet=True,
        **settings,
    )


def test_what_a_trial_prints_is_found_with_it_and_no_other() -> None:
    def train(x: float) -> float:
        if trial.number % 7 == 0:
            print(f"this is {trial.number}")
        if trial.number % 11 == 0:
            os.write(2, b"%d has no stream" % trial.number)
        assert os.path.basename(os.getcwd()) == trial.id
        return x

    result = search(train, workers=2)
    folder = ExperimentFolder(result.folder)
    for number in range(COUNT):
        paths = [folder.trial(number).output(name, 0) for name in ("stdout", "stderr")]
        texts = [path.read_text() if path.exists() else "" for path in paths]
        assert texts[0] == (f"this is {number}\n" if number % 7 == 0 else "")
        assert texts[1] == (f"{number} has no stream" if number % 11 == 0 else "")


def test_a_process_that_dies_takes_only_its_own_trial_along() -> None:
    def train(x: float) -> float:
        if trial.number % 50 == 49 and trial.attempt == 1:
            os._exit(3)
        return x

    result = search(train, workers=2)
    assert [one.number for one in result.trials if one.attempts > 1] == []
    assert [one.number for one in result.trials if one.state == "failed"] == list(range(49, COUNT, 50))
    assert sum(one.state == "completed" for one in result.trials) == COUNT - COUNT // 50


def test_a_lost_worker_loses_one_attempt() -> None:
    def train(x: float) -> float:
        if trial.number == 200 and trial.attempt == 1 and not os.path.exists("../killed"):
            Path("../killed").touch()
            os.kill(ancestors(1)[0], signal.SIGKILL)
            time.sleep(60)
        return x

    result = search(train, workers=2)
    assert {one.state for one in result.trials} == {"completed"}
    assert len(result.trials) == COUNT
    assert sum(one.attempts - 1 for one in result.trials) <= 1


def test_nothing_waits_behind_a_slow_trial(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    def train(x: float, gate: str) -> float:
        if trial.number == 100:
            while not os.path.exists(gate):  # until all others are done
                time.sleep(0.01)
        return x

    class OpensTheGate:
        ended = 0

        def on_facts(self, facts: Any) -> None:
            self.ended += sum(type(fact).__name__ == "TrialEnded" for fact in facts)
            if self.ended == COUNT - 1:
                gate.touch()

    result = experiment.launch(
        train,
        Searchspace(x=("DOUBLE", [0, 1]), gate=("CATEGORICAL", [str(gate)])),
        optimizer="randomsearch",
        num_trials=COUNT,
        workers=2,
        isolation="reuse",
        timeout_s=60,
        callbacks=[OpensTheGate()],
        quiet=True,
    )
    assert {one.state for one in result.trials} == {"completed"}
    assert max(result.trials, key=lambda one: one.ended_at or 0.0).number == 100


def test_an_interrupt_ends_what_runs_and_leaves_the_rest_for_later() -> None:
    class Interrupts:
        ended = 0

        def on_facts(self, facts: Any) -> None:
            before = self.ended
            self.ended += sum(type(fact).__name__ == "TrialEnded" for fact in facts)
            if before < 100 <= self.ended:
                os.kill(os.getpid(), signal.SIGINT)

    result = search(lambda x: x, 100_000, workers=2, callbacks=[Interrupts()])
    states = {one.state.value for one in result.trials}
    assert states <= {"completed", "pending", "running", "stopped", "interrupted"}
    again = experiment.resume(result.id, num_trials=len(result.trials) + 50, quiet=True)
    assert {one.state for one in again.trials} == {"completed"}
    assert [one.number for one in again.trials] == list(range(len(again.trials)))
