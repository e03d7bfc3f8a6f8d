"""With `deterministic=True` nothing that an optimizer sees or says depends on timing."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core import facts
from cargobike.core.records import IDLE, Decision, Direction, Params, Suggestion, Trial
from cargobike.engines.simulated.world import SimulatedFunction, SimulatedRun
from cargobike.experiments.scheduling.simulation import Cluster, SimulationResult, simulate
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.journals import canonical

SPACE = Searchspace(x=("DOUBLE", [0, 1]))


class Moody(AbstractOptimizer):
    """Suggests by what it has seen, in which order, and by how often it was asked; rests, pauses and resumes."""

    def __init__(self, milestones: bool) -> None:
        self._milestones = milestones

    def initialize(self) -> None:
        self._memory = 0.0
        self._paused: list[int] = []

    def observe(self, trial: Trial) -> None:
        last = trial.curve.values[-1] if len(trial.curve) else 0.5
        self._memory = 0.5 * self._memory + 0.25 * last + 0.01 * trial.number
        if trial.state == "paused":
            self._paused.append(trial.number)

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        mood = self.rng.random()
        if self._paused and mood < 0.4:
            return Suggestion(resume=self._paused.pop())
        if mood > 0.8 and len(self.trials) > len(self.final_store) + len(self._paused):
            return IDLE
        after = 0.0 if trial is None else trial.number / 100
        params = {"x": (self._memory + after + self.rng.random()) % 1.0}
        return Suggestion(params=params, milestones=(1, 3) if self._milestones else ())

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        others = [other.curve.values[-1] for other in trials if len(other.curve)]
        rank = sum(value > trial.curve.values[-1] for value in others)
        return (Decision.CONTINUE, Decision.PAUSE, Decision.CONTINUE, Decision.STOP)[(rank + step) % 4]


def timed(salt: int, *, failing: bool = False) -> SimulatedFunction:
    """Return a function whose results depend on parameters alone, and whose pace on `salt` as well."""

    def model(params: Params, seed: int) -> SimulatedRun:
        pace = random.Random(f"{salt}/{seed}")
        steps = [(pace.choice([0.0, 1.0, pace.random() * 30]), {"score": params["x"] * k}) for k in range(1, 5)]
        error = "ValueError: too small" if failing and params["x"] < 0.2 else None
        return SimulatedRun(steps=steps, value=params["x"], error=error)

    return model


def run(model: SimulatedFunction, **given: Any) -> SimulationResult:
    optimizer = given.pop("optimizer", "randomsearch")
    return simulate(
        model, SPACE, optimizer=optimizer, num_trials=20, seed=3, keep_facts=True, deterministic=True, **given
    )


clusters = st.builds(
    Cluster,
    speeds=st.lists(st.sampled_from([0.2, 1.0, 1.7]), min_size=1, max_size=4).map(tuple),
    startup_s=st.sampled_from([0.0, 20.0]),
)


@settings(max_examples=80)
@given(
    salt=st.integers(0, 10**6),
    cluster=clusters,
    gangs=st.sampled_from([(1, 1), (4, 1), (6, 2)]),
    milestones=st.booleans(),
    failing=st.booleans(),
    suggestion_s=st.sampled_from([0.0, 3.0]),
    ask_ahead=st.integers(0, 2),
)
def test_timing_changes_neither_suggestions_nor_what_becomes_of_them(
    salt: int,
    cluster: Cluster,
    gangs: tuple[int, int],
    milestones: bool,
    failing: bool,
    suggestion_s: float,
    ask_ahead: int,
) -> None:
    workers, gang = gangs
    other = run(
        timed(salt, failing=failing),
        optimizer=Moody(milestones),
        workers=workers,
        gang=gang,
        cluster=cluster,
        suggestion_s=suggestion_s,
        ask_ahead=ask_ahead,
    )
    assert canonical(other.facts) == reference(milestones, failing, workers, gang)


@cache
def reference(milestones: bool, failing: bool, workers: int, gang: int) -> dict[str, list[facts.AnyFact]]:
    result = run(timed(0, failing=failing), optimizer=Moody(milestones), workers=workers, gang=gang)
    return canonical(result.facts)


class BelowMedian:
    """Stops a trial that is worse than most others at the same step."""

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        peers = [dict(other.curve).get(step) for other in trials if other.number != trial.number]
        known = sorted(value for value in peers if value is not None)
        if known and trial.curve.values[-1] < known[len(known) // 2]:
            return Decision.STOP
        return Decision.CONTINUE


@settings(max_examples=30)
@given(salt=st.integers(0, 10**6), cluster=clusters)
def test_a_stop_rule_decides_the_same_whatever_the_timing(salt: int, cluster: Cluster) -> None:
    reference = run(timed(0), workers=3, early_stop=BelowMedian())
    other = run(timed(salt), workers=3, early_stop=BelowMedian(), cluster=cluster)
    assert canonical(other.facts) == canonical(reference.facts)
    stopped = [fact for fact in reference.facts if isinstance(fact, facts.Judged) and fact.decision == "stop"]
    assert stopped, "the rule stopped nothing: this test shows nothing"


@settings(max_examples=30)
@given(salt=st.integers(0, 10**6), cluster_seed=st.integers(0, 10**6))
def test_lost_workers_do_not_change_suggestions(salt: int, cluster_seed: int) -> None:
    cluster = Cluster(mean_time_to_failure_s=60.0, failed_starts=0.1, startup_s=5.0, seed=cluster_seed)
    patient = {"max_attempts": 10**6, "max_worker_losses": 10**6}
    reference = run(timed(0), optimizer=Moody(False), workers=4)
    other = run(timed(salt), optimizer=Moody(False), workers=4, cluster=cluster, **patient)
    assert suggestions(other.facts) == suggestions(reference.facts)
    assert [trial.value for trial in other.trials] == [trial.value for trial in reference.trials]


def suggestions(journal: Iterable[facts.AnyFact]) -> list[facts.AnyFact]:
    return canonical(journal)["optimizer"]


def test_without_it_the_same_search_depends_on_timing() -> None:
    """Shows that the tests above could fail."""
    journals = [
        simulate(timed(salt), SPACE, optimizer=Moody(True), num_trials=20, seed=3, workers=4, keep_facts=True).facts
        for salt in range(5)
    ]
    assert any(suggestions(journal) != suggestions(journals[0]) for journal in journals)
