"""Repeats: each setting with several seeds, seen as one trial by optimizers, stop rules and everyone who looks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import pytest

from cargobike.core.facts import TrialSuggested
from cargobike.core.ids import derived_seed
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import Decision, Direction, Suggestion, Trial, TrialState
from cargobike.engines.simulated.world import SimulatedRun
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.replay import Replay
from cargobike.experiments.scheduling.simulation import SimulationResult, simulate
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.optimizers.pbt import PopulationBasedTraining
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.repeated import Repeated
from cargobike.search.optimizers.tpe import TPE
from cargobike.search.spaces.space import Searchspace

SPACE = Searchspace(x=("DOUBLE", [0.0, 1.0]))


def noise(seed: int) -> float:
    return (seed % 1000) / 1000 - 0.5


def noisy(params: dict[str, Any], seed: int) -> SimulatedRun:
    value = params["x"] + 0.1 * noise(seed)
    return SimulatedRun(steps=[(1.0 + seed % 3, {"score": value})] * 3, value=value)


def saving(params: dict[str, Any], seed: int) -> SimulatedRun:
    value = params["x"] + 0.1 * noise(seed)
    return SimulatedRun(steps=[(1.0 + seed % 3, {"score": value})] * 9, value=value)


class Watched(RandomSearch):
    """Notes what it is shown."""

    def initialize(self) -> None:
        super().initialize()
        self.seen: list[Trial] = []

    def observe(self, trial: Trial) -> None:
        self.seen.append(trial)


def test_each_setting_is_run_with_several_seeds_and_scored_by_the_mean() -> None:
    result = simulate(noisy, SPACE, num_trials=5, repeats=3, workers=2, seed=7)
    assert result.state == "completed"
    assert [trial.number for trial in result.trials] == [0, 3, 6, 9, 12], "named by their first runs"
    assert len(result.record.runs) == 15
    for trial in result.trials:
        runs = [result.record.runs[number] for number in trial.repeats]
        values = [run.value for run in runs]
        assert [run.params for run in runs] == [trial.params] * 3
        assert len({run.seed for run in runs}) == 3
        assert trial.values == values
        assert trial.value == pytest.approx(statistics.fmean(values))  # type: ignore[arg-type]
        assert trial.spread == pytest.approx(statistics.stdev(values))  # type: ignore[type-var]
        assert trial.failures == 0
        assert trial.curve.steps.tolist() == [1, 2, 3]
        assert trial.curve.values[-1] == pytest.approx(trial.value)
    best = max(result.trials, key=lambda trial: trial.value or 0.0)
    assert result.best is best, "the best mean, not the luckiest seed"
    assert result.record.counts[TrialState.COMPLETED] == 5


def test_settings_and_seeds_follow_from_the_seed_alone() -> None:
    """The same settings as without repeats, their first runs with the same seeds, for any number of workers."""
    once = simulate(noisy, SPACE, num_trials=4, seed=7)
    results = [simulate(noisy, SPACE, num_trials=4, repeats=3, workers=workers, seed=7) for workers in (1, 5)]
    for result in results:
        assert [trial.params for trial in result.trials] == [trial.params for trial in once.trials]
        assert [trial.seed for trial in result.trials] == [trial.seed for trial in once.trials]
    first, second = ([run.seed for run in result.record.runs.values()] for result in results)
    assert first == second
    assert first[1] == derived_seed(first[0], "repeat", 1)


def test_the_optimizer_sees_one_observation_for_each_setting() -> None:
    optimizer = Watched()
    result = simulate(noisy, SPACE, optimizer=optimizer, num_trials=5, repeats=3, workers=4)
    assert sorted(trial.number for trial in optimizer.seen) == list(range(5))
    assert sorted(trial.value or 0 for trial in optimizer.seen) == sorted(trial.value or 0 for trial in result.trials)
    assert len(optimizer.final_store) == len(optimizer.trials) == 5


def failing(share: float) -> Any:
    """Fails with so many of the seeds of any setting, each time the first ones."""
    calls: dict[float, int] = {}

    def function(params: dict[str, Any], seed: int) -> SimulatedRun:
        count = calls[params["x"]] = calls.get(params["x"], 0) + 1
        if count <= 3 * share:
            return SimulatedRun(steps=[(1.0, {"score": 0.0})], error="a bad seed")
        return noisy(params, seed)

    return function


def test_a_setting_with_few_failures_completes_with_the_mean_of_the_others() -> None:
    result = simulate(failing(1 / 3), SPACE, num_trials=4, repeats=3, workers=1)
    assert len(result.trials) == 4
    for trial in result.trials:
        assert trial.state is TrialState.COMPLETED
        assert trial.failures == 1
        assert trial.values[0] is None
        assert trial.value == pytest.approx(statistics.fmean(trial.values[1:]))  # type: ignore[arg-type]


def test_a_setting_of_which_most_repeats_fail_has_failed_and_is_given_up() -> None:
    result = simulate(failing(2 / 3), SPACE, num_trials=2, repeats=3, workers=1)
    assert [trial.state for trial in result.trials] == [TrialState.FAILED] * 2
    assert [trial.failures for trial in result.trials] == [2, 2]
    assert all(len(trial.repeats) < 3 or trial.values[2] is not None for trial in result.trials)
    assert "2 of " in str(result.trials[0].error)
    assert "repeat 0 (trial 0): a bad seed" in str(result.trials[0].error)


def test_failures_are_counted_by_setting() -> None:
    """Three settings that fail alike end a search, not the three repeats of a single bad one."""
    result = simulate(failing(1.0), SPACE, num_trials=9, repeats=3, workers=1)
    assert result.state == "failed"
    assert "the first 3 trials all failed alike" in result.record.reason
    assert len(result.trials) >= 3


class BelowHalf:
    """Stops what is below a half at its second report, and notes what it was shown."""

    judges_steps = True

    def __init__(self) -> None:
        self.seen: list[tuple[int, float, int]] = []

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        self.seen.append((trial.number, trial.curve.values[-1], len(trials)))
        assert trial.number in {other.number for other in trials}
        return Decision.STOP if step == 1 and trial.curve.values[-1] < 0.5 else Decision.CONTINUE


@pytest.mark.parametrize("workers", [1, 3, 7])
def test_stop_rules_judge_the_mean_and_all_repeats_stop_together(workers: int) -> None:
    rule = BelowHalf()
    result = simulate(noisy, SPACE, num_trials=8, repeats=3, workers=workers, early_stop=rule, seed=2)
    assert result.state == "completed"
    assert {number for number, _, _ in rule.seen} <= set(range(8)), "rules see settings"
    stopped = [trial for trial in result.trials if trial.state is TrialState.STOPPED]
    assert stopped
    assert len(stopped) < 8
    for trial in stopped:
        states = [result.record.runs[number].state for number in trial.repeats]
        assert TrialState.STOPPED in states
        assert trial.value is None
        if workers == 1:
            assert len(states) <= 2, "one was suggested ahead of need, and no more are"


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("variant", ["promotion", "stopping"])
def test_halving_compares_means(variant: Any, workers: int) -> None:
    function = saving if variant == "promotion" else noisy
    result = simulate(
        function, SPACE, optimizer=ASHA(variant=variant), num_trials=12, repeats=2, workers=workers, seed=5
    )
    assert result.state == "completed"
    assert len(result.trials) == 12
    done = [trial for trial in result.trials if trial.state is TrialState.COMPLETED]
    assert done
    assert len(done) < 12
    if variant == "promotion":
        assert max(trial.params["x"] for trial in done) > 0.6
        for trial in done:
            assert [len(result.record.attempts[number]) for number in trial.repeats] == [trial.attempts // 2] * 2


def test_a_population_copies_each_repeat_from_its_like() -> None:
    result = simulate(
        saving,
        SPACE,
        optimizer=PopulationBasedTraining(4, interval=2),
        num_trials=10,
        repeats=2,
        workers=3,
        seed=1,
        keep_facts=True,
    )
    assert result.state == "completed"
    copies = [fact for fact in result.facts if isinstance(fact, TrialSuggested) and fact.copy_checkpoint_of is not None]
    assert copies
    repeat_of = {fact.trial: fact.info["repeat"] for fact in result.facts if isinstance(fact, TrialSuggested)}
    assert all(repeat_of[fact.copy_checkpoint_of] == fact.info["repeat"] for fact in copies)  # type: ignore[index]


def replayed(result: SimulationResult, optimizer: AbstractOptimizer, repeats: int) -> ExperimentRecord:
    """Lead a fresh optimizer through a journal; it must repeat its answers."""
    header, *past = result.facts
    record = fold([header])
    again = Repeated(optimizer, repeats)
    again.setup(SPACE, num_trials=record.header.num_trials, direction="max", seed=record.header.seed)
    again.initialize()
    session = OptimizerSession(again, record.runs, allowed=SPACE.names, settings=record.trials)
    Replay(Plan(workers=3, num_trials=record.header.num_trials), record, session).run(past)
    return record


@pytest.mark.parametrize("make", [RandomSearch, lambda: TPE(startup=2), lambda: ASHA(variant="promotion")])
def test_a_journal_is_replayed_and_folded_to_the_same(make: Any) -> None:
    result = simulate(saving, SPACE, optimizer=make(), num_trials=6, repeats=2, workers=3, seed=4, keep_facts=True)
    record = replayed(result, make(), 2)
    assert record.trials == result.record.trials
    assert record.best == result.best
    assert record.counts == result.record.counts


@pytest.mark.parametrize("make", [lambda: TPE(startup=2), lambda: ASHA(variant="stopping")])
def test_a_deterministic_search_with_repeats_does_not_depend_on_timing(make: Any) -> None:
    def quicker(params: dict[str, Any], seed: int) -> SimulatedRun:
        run = noisy(params, seed)
        return SimulatedRun(steps=[(4.0 - seed % 3, point) for _, point in run.steps], value=run.value)

    first, second = (
        simulate(function, SPACE, optimizer=make(), num_trials=6, repeats=2, workers=3, seed=4, deterministic=True)
        for function in (noisy, quicker)
    )
    assert [(t.number, t.params, t.state, t.value) for t in first.trials] == [
        (t.number, t.params, t.state, t.value) for t in second.trials
    ]


class Counting(AbstractOptimizer):
    """Does not count, and suggests for ever."""

    def initialize(self) -> None:
        self.asked = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        self.asked += 1
        return Suggestion(params={"x": 0.5})


def test_an_optimizer_that_does_not_count_gets_no_more_settings_than_asked_for() -> None:
    result = simulate(noisy, SPACE, optimizer=Counting(), num_trials=3, repeats=2, workers=2)
    assert result.state == "completed"
    assert len(result.trials) == 3
    assert len(result.record.runs) == 6


def test_nan_makes_no_best() -> None:
    def strange(params: dict[str, Any], seed: int) -> SimulatedRun:
        return SimulatedRun(steps=[], value=math.nan if seed % 2 else params["x"])

    result = simulate(strange, SPACE, num_trials=4, repeats=6, workers=2, seed=1)
    assert all(trial.value is not None and math.isnan(trial.value) for trial in result.trials if trial.spread is None)
    assert result.best is None or math.isfinite(result.best.value or math.nan)
