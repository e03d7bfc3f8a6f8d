"""Virtual time: durations, speeds, failures, pauses and what a driver costs, without anybody waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.facts import AttemptLost, Reported, TrialPaused
from cargobike.core.record import fold
from cargobike.core.records import Decision, Direction, ExperimentState, Params, Suggestion, Trial, TrialState
from cargobike.experiments.scheduling.simulation import Cluster, SimulatedRun, simulate
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested

SPACE = {"x": ("DOUBLE", [0, 1])}


def minutes(count: int, *, step_s: float = 60.0, error: str | None = None) -> Any:
    """Return a model that takes so many steps and returns its parameter."""

    def model(params: Params, seed: int) -> SimulatedRun:
        steps = [(step_s, {"score": params["x"] * (k + 1)}) for k in range(count)]
        return SimulatedRun(steps=steps, value=params["x"], error=error)

    return model


def test_ten_workers_take_a_tenth_of_the_time() -> None:
    alone = simulate(minutes(3), SPACE, num_trials=100, workers=1)
    together = simulate(minutes(3), SPACE, num_trials=100, workers=10)
    assert alone.makespan_s == 100 * 180
    assert together.makespan_s == 10 * 180
    assert together.utilisation == 1.0
    assert together.usage.busy_s == 100 * 180
    assert together.usage.steps == 300
    assert together.record.counts[TrialState.COMPLETED] == 100
    assert together.best is not None
    assert together.best.value == max(trial.value or 0 for trial in together.trials)
    assert list(together.trials[0].curve.steps) == [1, 2, 3]


def test_a_seed_makes_it_repeatable() -> None:
    cluster = Cluster(speeds=(1.0, 0.3), mean_time_to_failure_s=500.0, startup_s=7.0, seed=5)
    runs = [
        simulate(minutes(3), SPACE, num_trials=40, workers=4, seed=9, cluster=cluster, keep_facts=True)
        for _ in range(2)
    ]
    assert runs[0].facts == runs[1].facts
    other = simulate(minutes(3), SPACE, num_trials=40, workers=4, seed=10, cluster=cluster, keep_facts=True)
    assert other.facts != runs[0].facts


def test_the_record_is_its_facts_folded() -> None:
    result = simulate(minutes(2), SPACE, num_trials=20, workers=3, keep_facts=True)
    assert fold(result.facts) == result.record
    assert [fact.at for fact in result.facts] == sorted(fact.at for fact in result.facts)
    assert simulate(minutes(2), SPACE, num_trials=20, workers=3).facts == []


def test_nobody_waits_for_a_slow_worker() -> None:
    result = simulate(minutes(1), SPACE, num_trials=46, workers=10, cluster=Cluster(speeds=(1.0,) * 9 + (0.2,)))
    assert result.makespan_s == 300.0
    by_worker = [trial.worker for trial in result.trials]
    assert by_worker.count("w9") == 1
    assert by_worker.count("w0") == 5
    assert result.utilisation == 1.0


def test_a_gang_is_as_fast_as_its_slowest_member() -> None:
    result = simulate(minutes(1), SPACE, num_trials=2, workers=4, gang=2, cluster=Cluster(speeds=(1.0, 0.5)))
    assert result.makespan_s == 120.0
    assert result.record.counts[TrialState.COMPLETED] == 2


def test_workers_come_when_they_have_started() -> None:
    result = simulate(minutes(1), SPACE, num_trials=2, workers=2, cluster=Cluster(startup_s=30.0))
    assert [worker.joined_at for worker in result.record.workers.values()] == [30.0, 30.0]
    assert result.makespan_s == 90.0


def test_a_trial_goes_on_from_its_last_checkpoint_when_its_worker_dies() -> None:
    cluster = Cluster(mean_time_to_failure_s=300.0, seed=1)
    result = simulate(minutes(10), SPACE, num_trials=20, workers=4, cluster=cluster, keep_facts=True, max_attempts=100)
    assert result.record.counts[TrialState.COMPLETED] == 20
    assert any(isinstance(fact, AttemptLost) for fact in result.facts)
    assert result.usage.steps == 200, "no step that was reported is run twice"
    for trial in result.trials:
        assert list(trial.curve.steps) == list(range(1, 11))


def test_workers_that_never_come_are_replaced() -> None:
    result = simulate(minutes(1), SPACE, num_trials=20, workers=4, cluster=Cluster(failed_starts=0.4, seed=3))
    assert result.record.counts[TrialState.COMPLETED] == 20


def test_a_model_may_fail() -> None:
    result = simulate(minutes(1, error="ValueError: no"), SPACE, num_trials=20, workers=2)
    assert result.state is ExperimentState.FAILED
    assert result.record.reason == "the first 3 trials all failed alike:\nValueError: no"


def test_timeouts_are_kept_in_virtual_time() -> None:
    result = simulate(minutes(10), SPACE, num_trials=4, workers=2, trial_timeout_s=150.0, fail_fast=0)
    assert result.record.counts[TrialState.FAILED] == 4
    assert result.makespan_s == 300.0
    assert {trial.duration_s for trial in result.trials} == {150.0}
    result = simulate(minutes(10), SPACE, num_trials=100, workers=2, timeout_s=1500.0)
    assert result.makespan_s == 1500.0
    assert result.record.counts[TrialState.COMPLETED] == 4


class BelowHalf:
    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        return Decision.STOP if trial.params["x"] < 0.5 and step == 2 else Decision.CONTINUE


def test_a_stop_rule_saves_steps() -> None:
    result = simulate(minutes(10), SPACE, num_trials=50, workers=5, early_stop=BelowHalf())
    stopped = [trial for trial in result.trials if trial.state is TrialState.STOPPED]
    assert stopped
    assert {len(trial.curve) for trial in stopped} == {2}
    assert result.usage.steps == 10 * 50 - 8 * len(stopped)
    assert result.makespan_s < 50 * 600 / 5


class InTwoRounds(AbstractOptimizer):
    """Trains everybody for two steps, then lets the better half go on."""

    def initialize(self) -> None:
        self._paused: list[Trial] = []
        self._started = 0

    def observe(self, trial: Trial) -> None:
        if trial.state is TrialState.PAUSED:
            self._paused.append(trial)

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        assert self.num_trials is not None
        if self._started < self.num_trials:
            self._started += 1
            return Suggestion(params=self.space.sample(self.rng), milestones=(2,))
        if len(self._paused) + sum(kept.number >= 0 for kept in self.final_store) < self.num_trials:
            return "IDLE"
        self._paused.sort(key=lambda paused: paused.curve.values[-1])
        if len(self._paused) > self.num_trials // 2:
            return Suggestion(resume=self._paused.pop().number)
        return None

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        return Decision.PAUSE if step == 2 else Decision.CONTINUE


@pytest.mark.parametrize("gang", [1, 2])
def test_paused_trials_are_resumed_where_they_paused(gang: int) -> None:
    result = simulate(minutes(6), SPACE, optimizer=InTwoRounds(), num_trials=8, workers=4, gang=gang, keep_facts=True)
    pauses = [fact for fact in result.facts if isinstance(fact, TrialPaused)]
    assert [fact.step for fact in pauses] == [2] * 8
    completed = [trial for trial in result.trials if trial.state is TrialState.COMPLETED]
    assert completed
    for trial in completed:
        assert list(trial.curve.steps) == [1, 2, 3, 4, 5, 6]
        assert trial.attempts == 2
    reports = sum(isinstance(fact, Reported) for fact in result.facts)
    assert result.usage.steps == reports == 8 * 2 + len(completed) * 4


class Inheriting(AbstractOptimizer):
    """Lets the second trial begin with the first one's checkpoint."""

    def initialize(self) -> None:
        self._started = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        if self._started == 1 and not self.final_store:
            return "IDLE"
        self._started += 1
        return Suggestion(params={"x": 0.5}, copy_checkpoint_of=0 if self._started == 2 else None)


def test_a_trial_may_begin_with_anothers_checkpoint() -> None:
    result = simulate(minutes(3), SPACE, optimizer=Inheriting(), num_trials=2, workers=2)
    assert [len(trial.curve) for trial in result.trials] == [3, 0]
    assert result.makespan_s == 180.0


def test_asking_ahead_hides_a_slow_optimizer() -> None:
    given: dict[str, Any] = {"num_trials": 40, "workers": 4, "suggestion_s": 10.0}
    ahead = simulate(minutes(1), SPACE, **given)
    waiting = simulate(minutes(1), SPACE, ask_ahead=0, **given)
    assert waiting.makespan_s > ahead.makespan_s
    assert waiting.utilisation < ahead.utilisation


def test_impossible_clusters_are_refused_with_all_mistakes() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)speeds=.*startup_s must be 0 or more, -1.*failed_starts=1"):
        Cluster(speeds=(1.0, 0.0), startup_s=-1, failed_starts=1)


def test_a_thousand_workers_share_thousands_of_trials() -> None:
    result = simulate(minutes(1), SPACE, num_trials=4_000, workers=1_000)
    assert result.record.counts[TrialState.COMPLETED] == 4_000
    assert result.makespan_s == 240.0
    assert result.events >= 12_000
    assert 0 < result.driver_cpu_s < result.cpu_s
