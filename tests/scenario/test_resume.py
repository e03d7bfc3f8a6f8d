"""An experiment whose driver died goes on as if nothing had happened."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cargobike import Searchspace, experiment, trial
from cargobike.core.errors import OptimizerError, StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import ExperimentState, Trial, TrialState
from cargobike.experiments.results.result import Result
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.store.files.locking import DriverLock
from support.cut_copies import cut_copy
from support.scripts import run_script

SPACE = Searchspace(x=("DOUBLE", [0, 1]))


def train(x: float) -> float:
    begun: int = trial.checkpoint.load(default=0)
    for step in range(begun, 3):
        trial.report(score=x * step, step=step)
        trial.checkpoint.save(step + 1)
    print("began at", begun)
    if x > 0.9:
        raise ValueError("too large")
    return x


class Climber(AbstractOptimizer):
    """Searches near the best of what it has seen, so that a lost or repeated result would show."""

    def initialize(self) -> None:
        self._centre = 0.3

    def observe(self, trial: Trial) -> None:
        if trial.value is not None:
            self._centre = 0.5 * self._centre + 0.5 * trial.value

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return {"x": min(1.0, max(0.0, self.rng.gauss(self._centre, 0.3)))}


class Moody(Climber):
    """Does not keep to its seed."""

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return {"x": random.SystemRandom().random()}


def tried(result: Result) -> list[float]:
    return [one.params["x"] for one in result.trials]


@pytest.mark.parametrize("optimizer", [Climber, None])
def test_a_search_cut_anywhere_ends_like_an_unbroken_one(optimizer: type[Climber] | None) -> None:
    whole = experiment.launch(
        train,
        SPACE,
        optimizer=optimizer() if optimizer else "random",
        num_trials=6,
        workers=2,
        seed=11,
        deterministic=True,
        quiet=True,
    )
    length = len(ExperimentFolder(whole.folder).journal.read_bytes().splitlines())
    for lines in (1, 2, length // 3, length // 2, length - 2):
        torn = b'{"fact":"reported","trial":1,"st'
        resumed = experiment.resume(cut_copy(whole, lines, torn), quiet=True)
        assert resumed.state is ExperimentState.COMPLETED
        assert tried(resumed) == tried(whole), f"cut after line {lines}"
        assert [one.value for one in resumed.trials] == [one.value for one in whole.trials]
        assert [one.state for one in resumed.trials] == [one.state for one in whole.trials]


def test_a_killed_driver_is_taken_up_from_the_checkpoints(tmp_path: Path) -> None:
    told = run_script(
        tmp_path,
        """
        import json, os, signal, time
        from cargobike import experiment, trial

        def train(x):
            begun = trial.checkpoint.load(default=0)
            for step in range(begun, 2):
                trial.report(score=step, step=step)
                trial.checkpoint.save(step + 1)
                if x == 2 and step == 0 and begun == 0:
                    os.kill(DRIVER, signal.SIGKILL)
                    time.sleep(60)
            return x * 10 + begun

        if __name__ == "__main__":
            DRIVER = os.fork()
            if DRIVER == 0:
                DRIVER = os.getpid()
                experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=1, quiet=True)
            os.waitpid(DRIVER, 0)
            lost = experiment.load("last")
            resumed = experiment.resume("last", quiet=True)
            print(json.dumps([str(lost.state), str(resumed.state), [t.value for t in resumed.trials],
                              [t.attempts for t in resumed.trials]]))
        """,
    )
    assert told == ["lost", "completed", [0.0, 10.0, 21.0, 30.0], [1, 1, 2, 1]]


def test_a_finished_experiment_goes_on_with_more_trials() -> None:
    result = experiment.launch(train, SPACE, num_trials=3, workers=1, seed=4, quiet=True)
    more = experiment.resume(result.id, num_trials=5, quiet=True)
    unbroken = experiment.launch(train, SPACE, num_trials=5, workers=1, seed=4, quiet=True)
    assert tried(more) == tried(unbroken)
    assert len(experiment.load(result.id).trials) == 5
    assert {one.state for one in more.trials} <= {TrialState.COMPLETED, TrialState.FAILED}


def test_an_optimizer_that_does_not_repeat_itself_is_refused() -> None:
    result = experiment.launch(train, SPACE, optimizer=Moody(), num_trials=3, workers=1, seed=1, quiet=True)
    with pytest.raises(OptimizerError, match="does not repeat itself"):
        experiment.resume(cut_copy(result, 4), quiet=True)


def test_a_running_experiment_is_not_taken_up_twice() -> None:
    result = experiment.launch(train, params={"x": 0.5}, quiet=True)
    with DriverLock(ExperimentFolder(result.folder)), pytest.raises(StoreError, match="is being run by"):
        experiment.resume(result.id, quiet=True)
