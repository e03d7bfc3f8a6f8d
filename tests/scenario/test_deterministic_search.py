"""The same seed gives the same search, whatever the timing, through the front door and on real processes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import pytest

from cargobike import Searchspace, experiment, trial
from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import Decision, Direction, Trial
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.store.journal.journal import JournalReader
from cargobike.testing.journals import canonical

SPACE = Searchspace(x=("DOUBLE", [0, 1]), kind=("CATEGORICAL", ["a", "b"]))


def train(x: float, kind: str) -> float:
    pace = random.SystemRandom()  # the trial's own seed would make the timing repeatable, too
    for step in range(3):
        if pace.random() < 0.5:
            time.sleep(pace.random() * 0.03)
        trial.report(score=x * step, step=step)
    if x < 0.05:
        raise ValueError("too small")
    return x + random.random() if kind == "a" else x


class Climber(AbstractOptimizer):
    """Searches near the best of what it has seen: what it suggests depends on values and their order."""

    def initialize(self) -> None:
        self._centre = 0.5
        self._best = -1.0

    def observe(self, trial: Trial) -> None:
        if trial.value is not None:
            self._centre = 0.7 * self._centre + 0.3 * trial.params["x"]
            if trial.value > self._best:
                self._best, self._centre = trial.value, trial.params["x"]

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return {"x": min(1.0, max(0.0, self.rng.gauss(self._centre, 0.3))), "kind": self.rng.choice("ab")}


class StopBelowBest:
    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        values = [value for other in trials if other.number != trial.number for value in other.curve.values]
        behind = bool(values) and trial.curve.values[-1] < 0.5 * max(values)
        return Decision.STOP if behind and step == 2 else Decision.CONTINUE


def search(**given: object) -> list[AnyFact]:
    result = experiment.launch(
        train,
        SPACE,
        num_trials=16,
        seed=1,
        workers=2,
        deterministic=True,
        quiet=True,
        **given,  # type: ignore[arg-type]
    )
    return list(JournalReader(ExperimentFolder(result.folder).journal, EXPERIMENT_FACTS).read_new())


@pytest.mark.parametrize("optimizer", [lambda: "randomsearch", Climber], ids=["random", "adaptive"])
def test_the_same_seed_gives_the_same_journal(optimizer: Callable[[], str | AbstractOptimizer]) -> None:
    first, second = search(optimizer=optimizer()), search(optimizer=optimizer())
    assert first != second
    assert canonical(first) == canonical(second)


def test_the_same_seed_stops_the_same_trials_at_the_same_steps() -> None:
    first, second = search(early_stop=StopBelowBest()), search(early_stop=StopBelowBest())
    assert canonical(first) == canonical(second)
    assert {"stop", "continue"} <= {getattr(fact, "decision", None) for fact in first}
