"""Population based training: who is replaced by whom, with which parameters."""

from __future__ import annotations

import logging
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import IDLE, Decision, Direction, Params, Suggestion, Trial, TrialState
from cargobike.experiments.scheduling.simulation import Cluster, SimulatedRun, SimulationResult, simulate
from cargobike.search.optimizers.pbt import PopulationBasedTraining
from cargobike.search.optimizers.registry import resolve_optimizer
from cargobike.search.spaces.space import Searchspace

SPACE = Searchspace(
    lr=("DOUBLE", [1e-4, 1e-1], "log"),
    layers=("INTEGER", [1, 9]),
    batch=("DISCRETE", [16, 32, 64]),
    act=("CATEGORICAL", ["relu", "gelu"]),
    slope=("DOUBLE", [0.0, 1.0], {"when": {"act": "relu"}}),
)


class Player:
    """Plays the driver and all workers, one step at a time."""

    def __init__(
        self,
        optimizer: PopulationBasedTraining,
        *,
        num_trials: int | None = 20,
        direction: Direction = "max",
        deterministic: bool = False,
    ) -> None:
        self.optimizer = optimizer
        optimizer.deterministic = deterministic
        optimizer.setup(SPACE, num_trials=num_trials, direction=direction, seed=1)
        optimizer.initialize()
        self.trials: dict[int, Trial] = {}
        self.copied: dict[int, int | None] = {}

    def next(self) -> int:
        suggestion = self.optimizer.get_suggestion()
        assert isinstance(suggestion, Suggestion), suggestion
        if suggestion.resume is not None:
            self.trials[suggestion.resume].state = TrialState.RUNNING
            return suggestion.resume
        SPACE.validate(suggestion.params)
        number = len(self.trials)
        self.trials[number] = Trial(
            suggestion.params, number=number, state=TrialState.RUNNING, info=suggestion.info, has_checkpoint=True
        )
        self.copied[number] = suggestion.copy_checkpoint_of
        return number

    def report(self, number: int, step: int, value: float) -> Decision:
        trial = self.trials[number]
        trial.curve.add(step, value)
        decision = self.optimizer.judge(trial, step, list(self.trials.values()))
        if decision is not Decision.CONTINUE:
            self.end(number, TrialState.PAUSED if decision is Decision.PAUSE else TrialState.STOPPED)
        return decision

    def end(self, number: int, state: TrialState, value: float | None = None) -> None:
        self.trials[number].state, self.trials[number].value = state, value
        self.optimizer.observe(self.trials[number])


def started(population: int = 4, interval: int = 1, **more: object) -> Player:
    player = Player(PopulationBasedTraining(population, interval=interval), **more)  # type: ignore[arg-type]
    for number in range(population):
        assert player.next() == number
    return player


@pytest.mark.parametrize("direction", ["max", "min"])
def test_the_worst_goes_on_from_what_the_best_has_learned(direction: Direction) -> None:
    player = started(direction=direction)
    sign = 1 if direction == "max" else -1
    for number, value in enumerate([0.9, 0.5, 0.6]):
        assert player.report(number, 0, sign * value) is Decision.CONTINUE
    assert player.report(3, 0, sign * 0.1) is Decision.STOP
    child = player.next()
    assert child == 4
    assert player.copied[child] == 0
    assert player.trials[child].info == {
        "slot": 3,
        "generation": 1,
        "parent": 0,
        "parent_generation": 0,
        "replaces": 3,
    }
    assert player.trials[child].params != player.trials[0].params


def test_a_copy_is_not_judged_before_it_has_trained_for_an_interval() -> None:
    player = started(interval=4)
    for number, value in enumerate([0.9, 0.5, 0.6, 0.1]):
        player.report(number, 0, 0.0)
        decision = player.report(number, 3, value)
    assert decision is Decision.STOP
    child = player.next()
    player.trials[child].curve.add(4, 0.0)
    assert player.optimizer.judge(player.trials[child], 4, []) is Decision.CONTINUE
    for number in (0, 1, 2):
        player.report(number, 7, 0.5)
    assert player.report(child, 6, 0.0) is Decision.CONTINUE
    assert player.report(child, 7, 0.0) is Decision.STOP


def test_a_trial_that_is_not_among_its_equals_is_left_alone() -> None:
    player = started()
    assert [player.report(number, 0, value) for number, value in enumerate([0.9, 0.1, 0.5])] == [Decision.CONTINUE] * 3
    assert player.report(0, 1, 0.2) is Decision.CONTINUE, "the only one of its age"


def test_what_is_no_number_is_the_worst() -> None:
    player = started()
    for number, value in enumerate([0.9, -0.5, -0.6]):
        player.report(number, 0, value)
    assert player.report(3, 0, math.nan) is Decision.STOP


def test_with_fewer_workers_trials_take_turns() -> None:
    player = Player(PopulationBasedTraining(4, interval=1))
    order = []
    for _ in range(12):
        number = player.next()
        while True:
            trial = player.trials[number]
            order.append((number, len(trial.curve)))
            if player.report(number, len(trial.curve), 0.5 + number / 10) is not Decision.CONTINUE:
                break
    ages = [0, 0, 0, 0]
    for number, age in order:
        if number < 4:
            assert age - min(ages) <= 1, "nobody runs ahead of the others"
            ages[number] = age + 1


def test_when_the_trials_are_used_up_nobody_is_replaced() -> None:
    player = started(num_trials=5)
    for number, value in enumerate([0.9, 0.5, 0.6]):
        player.report(number, 0, value)
    assert player.report(3, 0, 0.1) is Decision.STOP
    assert player.next() == 4
    for number, value in enumerate([0.9, 0.5, 0.6]):
        player.report(number, 1, value)
    assert player.report(4, 1, 0.1) is Decision.CONTINUE
    assert player.optimizer.get_suggestion() == IDLE
    for number in (0, 1, 2, 4):
        player.end(number, TrialState.COMPLETED, 0.5)
    assert player.optimizer.get_suggestion() is None


def test_a_failed_trial_is_replaced_if_there_is_somebody_to_copy() -> None:
    player = started(population=5)
    player.end(4, TrialState.FAILED)
    assert player.optimizer.get_suggestion() == IDLE, "there was nobody"
    for number, value in enumerate([0.9, 0.5, 0.6, 0.7]):
        player.report(number, 0, value)
    player.end(2, TrialState.FAILED)
    assert player.next() == 5
    assert player.copied[5] == 0


def test_nobody_starts_from_a_trial_that_has_ended() -> None:
    player = started()
    for number, value in enumerate([0.9, 0.5, 0.6]):
        player.report(number, 0, value)
    player.end(0, TrialState.COMPLETED, 0.9)
    assert player.report(3, 0, 0.1) is Decision.CONTINUE


def test_without_checkpoints_nobody_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    player = started()
    for number in range(4):
        player.trials[number].has_checkpoint = False
    with caplog.at_level(logging.WARNING):
        for number in range(4):
            assert player.report(number, 0, number / 10) is Decision.CONTINUE
            player.end(number, TrialState.COMPLETED, 0.5)
    assert caplog.text.count("saves no checkpoints") == 1
    assert player.optimizer.get_suggestion() is None


@given(st.integers(0, 10_000))
def test_parameters_stay_in_the_space_and_near_their_parent(seed: int) -> None:
    optimizer = PopulationBasedTraining(perturbation=0.1, resample=0.0)
    optimizer.setup(SPACE, num_trials=10, direction="max", seed=seed)
    optimizer.initialize()
    parent = SPACE.sample(random.Random(seed))
    child = optimizer._explore(parent)
    SPACE.validate(child)
    assert child["act"] == parent["act"]
    assert abs(child["layers"] - parent["layers"]) <= 1
    pairs = zip(SPACE.to_unit(parent), SPACE.to_unit(child), strict=True)
    for parameter, (before, after) in zip(SPACE.parameters.values(), pairs, strict=True):
        if before is not None and after is not None and parameter.count is None:
            assert abs(after - before) == pytest.approx(min(0.1, before if after < before else 1 - before))


def run(seed: int, *, deterministic: bool, speeds: tuple[float, ...]) -> SimulationResult:
    def train(params: Params, seed: int) -> SimulatedRun:
        speed = 0.1 + params["layers"] / 10
        points = [(speed, {"score": step * (1 + math.log10(params["lr"]))}) for step in range(20)]
        return SimulatedRun(steps=points, value=points[-1][1]["score"])

    return simulate(
        train,
        SPACE,
        optimizer=PopulationBasedTraining(6, interval=4),
        num_trials=25,
        workers=3,
        seed=seed,
        cluster=Cluster(speeds=speeds),
        deterministic=deterministic,
    )


def test_a_deterministic_search_does_not_depend_on_timing() -> None:
    slow, quick = (run(3, deterministic=True, speeds=speeds) for speeds in ((1.0, 0.1, 0.7), (1.0,)))
    assert [(trial.params, trial.info, trial.state) for trial in slow.trials] == [
        (trial.params, trial.info, trial.state) for trial in quick.trials
    ]
    assert any("parent" in trial.info for trial in slow.trials)


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_search_ends_with_its_population_completed(deterministic: bool) -> None:
    result = run(1, deterministic=deterministic, speeds=(1.0, 0.3))
    assert result.state == "completed"
    assert sum(trial.state is TrialState.COMPLETED for trial in result.trials) == 6
    assert 6 < len(result.trials) <= 25


def test_mistakes_are_listed_all_at_once() -> None:
    with pytest.raises(
        InvalidInputError, match=r"(?s)population=1.*interval=0.*quantile=0.6.*perturbation=0.*resample=2"
    ):
        PopulationBasedTraining(1, interval=0, quantile=0.6, perturbation=0, resample=2)


def test_it_is_found_by_name() -> None:
    assert isinstance(resolve_optimizer("PBT"), PopulationBasedTraining)


def test_a_place_is_kept_although_its_donor_ends_before_the_copy_is_made() -> None:
    """The stopped trial's place goes on from the best of those that still train."""
    player = started()
    for number, value in enumerate([0.9, 0.5, 0.6]):
        player.report(number, 0, value)
    assert player.report(3, 0, 0.1) is Decision.STOP
    player.end(0, TrialState.COMPLETED, 0.9)
    child = player.next()
    assert (player.copied[child], player.trials[child].info["replaces"]) == (2, 3)


def test_a_place_goes_on_from_its_own_state_if_all_others_have_ended() -> None:
    player = started()
    for number, value in enumerate([0.9, 0.5, 0.6]):
        player.report(number, 0, value)
    assert player.report(3, 0, 0.1) is Decision.STOP
    for number in range(3):
        player.end(number, TrialState.COMPLETED, 0.5)
    child = player.next()
    assert (player.copied[child], player.trials[child].info["slot"]) == (3, 3)
    player.end(child, TrialState.COMPLETED, 0.5)
    assert player.optimizer.get_suggestion() is None


def test_a_trial_that_waits_goes_on_if_whom_it_was_to_copy_has_ended() -> None:
    """In a deterministic search trials are paused, not stopped, so that nothing needs to be copied."""
    player = started(deterministic=True)
    for number, value in enumerate([0.9, 0.5, 0.6, 0.1]):
        assert player.report(number, 0, value) is Decision.PAUSE
    assert list(player.optimizer._to_replace) == [3]
    for number in range(3):
        player.end(number, TrialState.STOPPED)
    assert player.next() == 3
    assert player.trials[3].state is TrialState.RUNNING


def test_a_failed_trial_is_not_copied_from_itself() -> None:
    player = started()
    for number, value in enumerate([0.9, 0.5, 0.6, 0.55]):
        player.report(number, 0, value)
    player.end(1, TrialState.FAILED)
    for number in (0, 2, 3):
        player.end(number, TrialState.COMPLETED, 0.5)
    assert player.optimizer.get_suggestion() is None
