"""ASHA: who goes on from which rung, and what must never happen."""

from __future__ import annotations

import logging
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import IDLE, Decision, Direction, Suggestion, Trial, TrialState
from cargobike.search.models.rungs import Pace, Rung, levels_of, useful_levels
from cargobike.search.models.sampler import RandomSampler
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.registry import resolve_optimizer
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import Drive, drive

SPACE = Searchspace(x=("DOUBLE", [0.0, 1.0]))
SCORES = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([math.nan, math.inf, -math.inf]))


def made(optimizer: ASHA, *, num_trials: int | None = 27, direction: Direction = "max") -> ASHA:
    optimizer.setup(SPACE, num_trials=num_trials, direction=direction, seed=1)
    optimizer.initialize()
    return optimizer


def curve_of(length: int, noise_seed: int = 0) -> Any:
    def objective(params: dict[str, float]) -> list[float]:
        rng = random.Random(f"{noise_seed} {params['x']}")
        return [params["x"] * (1 - 0.7**step) + rng.gauss(0, 0.05) for step in range(1, length + 1)]

    return objective


class Player:
    """Takes single trials by the hand, to any step."""

    def __init__(self, optimizer: ASHA) -> None:
        self.optimizer = optimizer
        self.trials: dict[int, Trial] = {}
        self.milestones: dict[int, tuple[int, ...]] = {}

    def next(self) -> int:
        suggestion = self.optimizer.get_suggestion()
        assert isinstance(suggestion, Suggestion), suggestion
        number = len(self.trials) if suggestion.resume is None else suggestion.resume
        if suggestion.resume is None:
            trial = Trial(suggestion.params, number=number, info=suggestion.info)
            self.trials[number] = self.optimizer.trials[number] = trial
        self.trials[number].state = TrialState.RUNNING
        assert isinstance(suggestion.milestones, tuple)
        self.milestones[number] = suggestion.milestones
        return number

    def report(self, number: int, step: int, value: float) -> Decision:
        trial = self.trials[number]
        trial.curve.add(step, value)
        decision = self.optimizer.judge(trial, step, list(self.trials.values()))
        if decision is not Decision.CONTINUE:
            self.end(number, TrialState.PAUSED if decision is Decision.PAUSE else TrialState.STOPPED)
        return decision

    def end(self, number: int, state: TrialState, value: float | None = None) -> None:
        self.trials[number].state = state
        self.trials[number].value = value
        self.optimizer.observe(self.trials[number])


# -- rungs -----------------------------------------------------------------------------------------------------------


def test_levels_grow_by_the_factor_up_to_the_end() -> None:
    assert levels_of(1, 3, 27, 10) == [1, 3, 9]
    assert levels_of(1, 3, 28, 10) == [1, 3, 9, 27]
    assert levels_of(100, 4, None, 3) == [100, 400, 1600]
    assert levels_of(1, 1.5, None, 6) == [1, 2, 3, 4, 5, 8]
    assert levels_of(5, 3, 5, 10) == []


def test_there_are_as_many_rungs_as_trials_can_compete_on() -> None:
    assert [useful_levels(count, 3) for count in (1, 2, 3, 8, 9, 26, 27, 60)] == [0, 0, 1, 1, 2, 2, 3, 3]


@given(st.lists(SCORES, min_size=1, max_size=40), st.sampled_from([2, 3, 4, 2.5]))
def test_who_may_go_on_is_among_the_best_at_that_time(scores: list[float], factor: float) -> None:
    rung = Rung(1, factor, "max")
    for number, score in enumerate(scores):
        rung.add(number, score)
        so_far = [s if math.isfinite(s) else -math.inf for s in scores[: number + 1]]
        allowed = [other for other in range(number + 1) if rung.is_promotable(other)]
        assert len(allowed) <= len(so_far) / factor
        for other in allowed:
            assert math.isfinite(scores[other])
            assert sum(s > so_far[other] for s in so_far) < len(so_far) / factor


@given(st.lists(SCORES, min_size=1, max_size=30), st.sampled_from([2, 3, 4]))
def test_a_rung_for_the_minimum_is_one_for_the_maximum_of_the_negated(scores: list[float], factor: int) -> None:
    up, down = Rung(1, factor, "max"), Rung(1, factor, "min")
    for number, score in enumerate(scores):
        assert up.cutoff() == (None if (cutoff := down.cutoff()) is None else -cutoff)
        up.add(number, score)
        down.add(number, -score)
        up.wait(number)
        down.wait(number)
        assert up.best_waiting() == down.best_waiting()
        assert up.survives(number) == down.survives(number)
        assert [up.is_promotable(n) for n in range(number + 1)] == [down.is_promotable(n) for n in range(number + 1)]


@given(st.lists(SCORES, max_size=30), st.floats(-4, 4), st.sampled_from([2, 3]))
def test_whoever_beats_the_cutoff_survives(scores: list[float], newcomer: float, factor: int) -> None:
    rung = Rung(1, factor, "max")
    for number, score in enumerate(scores):
        rung.add(number, score)
    cutoff = rung.cutoff()
    rung.add(len(scores), newcomer)
    assert rung.survives(len(scores)) == (cutoff is None or newcomer > cutoff)


def test_of_equals_the_earliest_goes_on() -> None:
    rung = Rung(1, 3, "max")
    for number in (4, 2, 3):
        rung.add(number, 0.5)
    assert [rung.is_promotable(number) for number in (2, 3, 4)] == [True, False, False]


# -- promotion -------------------------------------------------------------------------------------------------------


def test_a_paused_trial_is_resumed_when_it_is_among_the_best_third() -> None:
    player = Player(made(ASHA(variant="promotion")))
    for number, value in enumerate([0.5, 0.9]):
        assert player.next() == number
        assert player.report(number, 0, value) is Decision.PAUSE
    assert player.next() == 2
    assert player.report(2, 0, 0.1) is Decision.PAUSE
    assert player.next() == 1, "the best of three"
    assert player.next() == 3, "nobody else yet, so something new"


def test_the_best_of_a_rung_goes_on_without_a_pause() -> None:
    player = Player(made(ASHA(variant="promotion")))
    for number, value in enumerate([0.5, 0.6]):
        player.next()
        player.report(number, 0, value)
    assert player.report(player.next(), 0, 0.9) is Decision.CONTINUE
    assert player.report(player.next(), 0, 0.8) is Decision.PAUSE, "the second of four"


def test_a_slow_worker_gives_a_promoted_trial_away() -> None:
    player = Player(made(ASHA(variant="promotion")))

    for number in range(9):
        assert player.next() == number
        player.trials[number].worker = "slow" if number in (0, 8) else "fast"
    decisions = [player.report(number, 0, value) for number, value in enumerate([0.0] * 7 + [0.8, 0.9])]
    assert decisions[7] is Decision.CONTINUE
    assert decisions[8] is Decision.PAUSE
    assert player.next() == 8, "whoever is free goes on with it"


def test_who_keeps_up_is_told_by_the_steps_done() -> None:
    def trial(number: int, worker: str, steps: int) -> Trial:
        found = Trial({}, number=number, worker=worker)
        for step in range(steps):
            found.curve.add(step, 0.0)
        return found

    pace = Pace()
    assert pace.keeps_up("anybody")
    for number, (worker, steps) in enumerate([("slow", 1), ("quick", 9), ("middling", 1), ("quick", 2)]):
        pace.count(trial(number, worker, steps))
    assert [pace.keeps_up(worker) for worker in ("slow", "quick", "middling")] == [False, True, True]
    pace.count(trial(0, "slow", 20))
    assert pace.keeps_up("slow"), "it has caught up"
    assert pace.keeps_up(None)


@pytest.mark.parametrize("first", [0, 1])
def test_a_level_is_the_same_training_whether_steps_start_at_0_or_1(first: int) -> None:
    player = Player(made(ASHA(variant="promotion", resource_min=2)))
    number = player.next()
    decisions = []
    for step in range(first, first + 10):
        if not any(step >= milestone for milestone in player.milestones[number]):
            player.trials[number].curve.add(step, 0.5)
            continue
        decisions.append((step, player.report(number, step, 0.5)))
        if decisions[-1][1] is Decision.PAUSE:
            break
    assert decisions[-1] == (first + 1, Decision.PAUSE)
    player.next()
    assert player.milestones[1][0] == first + 1, "learned from the first trial"


def test_a_report_may_pass_several_rungs_at_once() -> None:
    player = Player(made(ASHA(variant="promotion", resource_max=1000)))
    for number in range(3):
        player.next()
        assert player.report(number, 100, number / 10) is (Decision.PAUSE if number < 2 else Decision.CONTINUE)
    assert player.next() == 3, "nobody waits at the rungs that were passed"


def test_the_first_that_completes_shows_where_the_function_ends() -> None:
    player = Player(made(ASHA(variant="promotion"), num_trials=1000))
    player.next()
    for step in range(9):
        player.trials[0].curve.add(step, 0.5)
    player.end(0, TrialState.COMPLETED, 0.5)
    assert player.milestones[0] == (0, 1, 2, 3, 8, 9, 26, 27, 80, 81, 242, 243)
    player.next()
    assert player.milestones[1] == (0, 2), "step 8 is the last one"


def test_waiting_trials_at_the_functions_end_are_let_through() -> None:
    player = Player(made(ASHA(variant="promotion"), num_trials=1000))
    for number in range(2):
        player.next()
        player.report(number, 9, 0.5 + number)
    assert player.trials[0].state is TrialState.RUNNING, "somebody must find out where the end is"
    assert player.trials[1].state is TrialState.PAUSED
    player.end(0, TrialState.COMPLETED, 0.5)
    assert player.next() == 1


def test_a_trial_that_was_lost_and_starts_again_is_no_second_entry() -> None:
    player = Player(made(ASHA(variant="promotion")))
    for number in range(3):
        player.next()
        player.report(number, 0, number / 10)
    assert player.trials[2].state is TrialState.RUNNING
    assert player.report(2, 0, 0.0) is Decision.CONTINUE, "it has been judged, and was not worse then"


def test_nothing_is_suggested_twice_and_the_end_is_said_once() -> None:
    optimizer = made(ASHA(variant="promotion"), num_trials=3)
    player = Player(optimizer)
    for _ in range(3):
        player.next()
    assert optimizer.get_suggestion() == IDLE, "some of them may be worth resuming"
    for number in range(2):
        player.report(number, 0, number / 10)
    assert optimizer.get_suggestion() == IDLE
    player.end(2, TrialState.FAILED)
    assert player.next() == 1, "a search must complete somebody"
    assert player.report(1, 2, 0.1) is Decision.CONTINUE
    player.end(1, TrialState.COMPLETED, 0.1)
    assert optimizer.get_suggestion() is None


def test_if_the_last_hope_fails_the_next_one_is_tried() -> None:
    optimizer = made(ASHA(variant="promotion"), num_trials=4)
    player = Player(optimizer)
    for number in range(4):
        player.next()
        player.report(number, 0, math.nan)
    assert player.next() == 0
    player.end(0, TrialState.FAILED)
    assert player.next() == 1
    player.report(1, 5, math.nan)
    player.end(1, TrialState.COMPLETED, math.nan)
    assert optimizer.get_suggestion() is None


def test_where_nothing_new_is_left_the_others_go_on() -> None:
    def rising(params: dict[str, int]) -> list[float]:
        return [params["x"] * (1 - 0.7**step) for step in range(1, 28)]

    def completed(num_trials: int) -> int:
        optimizer = ASHA(variant="promotion", resource_max=27)
        space = Searchspace(x=("INTEGER", [1, 20]))
        result = drive(optimizer, rising, space=space, num_trials=num_trials, seed=1)
        assert result.exhausted
        assert len(result.trials) == 20
        return sum(trial.state is TrialState.COMPLETED for trial in result.trials)

    assert completed(20) < 10, "all that were asked for have been started, so that halving is over"
    assert completed(1000) == 20, "more may be done, but there is nothing new"


# -- stopping --------------------------------------------------------------------------------------------------------


def test_stopping_ends_whoever_is_not_among_the_best() -> None:
    player = Player(made(ASHA(variant="stopping")))
    decisions = [player.report(player.next(), 0, value) for value in (0.5, 0.4, 0.6, 0.55, math.nan)]
    stop, go_on = Decision.STOP, Decision.CONTINUE
    assert decisions == [go_on, stop, go_on, go_on, stop]


def test_without_a_number_to_compare_with_nobody_is_stopped() -> None:
    player = Player(made(ASHA(variant="stopping")))
    assert {player.report(player.next(), 0, math.nan) for _ in range(5)} == {Decision.CONTINUE}


def test_auto_pauses_those_that_save_checkpoints() -> None:
    player = Player(made(ASHA()))
    player.next()
    assert player.report(0, 0, 0.9) is Decision.CONTINUE
    player.next()
    assert player.report(1, 0, 0.5) is Decision.STOP, "nobody was seen to save anything"
    player.next()
    player.trials[2].has_checkpoint = True
    assert player.report(2, 0, 0.5) is Decision.PAUSE
    player.next()
    assert player.report(3, 0, 0.5) is Decision.PAUSE, "it will save one too"


# -- whole searches --------------------------------------------------------------------------------------------------


def depth(result: Drive, step: int) -> int:
    return sum(len(trial.curve) > step for trial in result.trials)


@pytest.mark.parametrize("variant", ["promotion", "stopping"])
def test_few_trials_get_far_and_the_winner_is_good(variant: Any) -> None:
    result = drive(ASHA(variant=variant), curve_of(27), space=SPACE, num_trials=81, at_most=81, workers=4, order_seed=1)
    assert depth(result, 0) == 81
    assert 20 < depth(result, 1) < 45
    assert 4 <= depth(result, 9) < 16
    completed = [trial for trial in result.trials if trial.state is TrialState.COMPLETED]
    assert completed
    scores = sorted((trial.params["x"] for trial in result.trials), reverse=True)
    assert max(completed, key=lambda trial: trial.value or 0).params["x"] >= scores[5]


@settings(max_examples=40)
@given(
    num_trials=st.integers(1, 30),
    length=st.integers(1, 12),
    workers=st.integers(1, 5),
    variant=st.sampled_from(["promotion", "stopping"]),
    factor=st.sampled_from([2, 3]),
    seed=st.integers(0, 3),
    resource_max=st.booleans(),
)
def test_every_search_completes_somebody(
    num_trials: int, length: int, workers: int, variant: Any, factor: int, seed: int, resource_max: bool
) -> None:
    result = drive(
        ASHA(factor, variant=variant, resource_max=length if resource_max else None),
        curve_of(length, seed),
        space=SPACE,
        num_trials=num_trials,
        at_most=num_trials,
        workers=workers,
        order_seed=seed,
    )
    assert not result.stuck
    assert len(result.trials) == num_trials
    assert any(trial.state is TrialState.COMPLETED for trial in result.trials)
    resumed = [answer for answer in result.answers if isinstance(answer, tuple)]
    assert len(resumed) <= sum(len(trial.curve) > 0 for trial in result.trials) * 4


@settings(max_examples=20)
@given(
    variant=st.sampled_from(["promotion", "stopping"]),
    scores=st.lists(st.lists(SCORES, min_size=9, max_size=9), min_size=30, max_size=30),
    workers=st.integers(1, 4),
)
def test_minimizing_is_maximizing_the_negated(variant: Any, scores: list[list[float]], workers: int) -> None:
    def run(direction: Direction, sign: float) -> Drive:
        rows = iter(scores)
        return drive(
            ASHA(variant=variant),
            lambda params: [sign * value for value in next(rows)],
            space=SPACE,
            num_trials=30,
            direction=direction,
            workers=workers,
        )

    up, down = run("max", 1.0), run("min", -1.0)
    assert up.answers == down.answers
    assert [trial.state for trial in up.trials] == [trial.state for trial in down.trials]


@pytest.mark.parametrize("variant", ["promotion", "stopping", "auto"])
def test_a_deterministic_judge_knows_only_what_was_known_at_the_start(variant: Any) -> None:
    def decisions(order: list[int]) -> dict[int, Decision]:
        optimizer = ASHA(variant=variant)
        optimizer.deterministic = True
        player = Player(made(optimizer))
        for _ in range(3):
            player.next()
        for number, value in enumerate([0.5, 0.6, 0.7]):
            player.trials[number].curve.add(0, value)
            player.end(number, TrialState.STOPPED)
        for _ in range(6):
            player.next()
        found = {}
        for number in order:
            trial = player.trials[number]
            trial.curve.add(0, number / 10)
            found[number] = optimizer.judge(trial, 0, list(player.trials.values()))
        return found

    assert decisions([3, 4, 5, 6, 7, 8]) == decisions([8, 3, 7, 4, 6, 5])


def deterministic(variant: Any, *, direction: Direction = "max") -> Player:
    """A deterministic search in which three trials have been stopped at step 0, with 0.5, 0.6 and 0.7."""
    optimizer = ASHA(variant=variant)
    optimizer.deterministic = True
    player = Player(made(optimizer, direction=direction))
    for number, value in enumerate([0.5, 0.6, 0.7]):
        assert player.next() == number
        player.trials[number].curve.add(0, value)
        player.end(number, TrialState.STOPPED)
    return player


@pytest.mark.parametrize(
    ("direction", "cutoff", "passing", "failing"), [("max", 0.6, 0.61, 0.59), ("min", 0.6, 0.59, 0.61)]
)
def test_a_deterministic_judge_stops_what_the_cutoff_of_its_start_does_not_let_pass(
    direction: Direction, cutoff: float, passing: float, failing: float
) -> None:
    player = deterministic("stopping", direction=direction)
    for value, decision in [
        (passing, Decision.CONTINUE),
        (failing, Decision.STOP),
        (cutoff, Decision.STOP),
        (math.nan, Decision.STOP),
    ]:
        number = len(player.trials)
        suggestion = player.optimizer.get_suggestion()
        assert isinstance(suggestion, Suggestion)
        assert suggestion.info == {"cutoffs": {"1": cutoff}, "saves": False}
        trial = Trial(suggestion.params, number=number, info=suggestion.info)
        trial.curve.add(0, value)
        player.trials[number] = trial
        assert player.optimizer.judge(trial, 0, []) is decision


def test_a_deterministic_judge_compares_with_none_where_there_was_none() -> None:
    optimizer = ASHA(variant="stopping")
    optimizer.deterministic = True
    player = Player(made(optimizer))
    decisions = [player.report(player.next(), 0, value) for value in (0.9, 0.1)]
    assert decisions == [Decision.CONTINUE, Decision.CONTINUE], (
        "what still runs may be slow or quick, and does not count"
    )
    player = deterministic("stopping")
    number = player.next()
    assert player.report(number, 0, 0.9) is Decision.CONTINUE
    assert player.report(number, 2, 0.0) is Decision.CONTINUE, "none had got so far when it was suggested"


def test_a_deterministic_judge_decides_once_at_each_rung() -> None:
    player = deterministic("stopping")
    number = player.next()
    trial = player.trials[number]
    trial.curve.add(0, 0.9)
    assert player.optimizer.judge(trial, 0, []) is Decision.CONTINUE
    trial.curve.add(1, 0.0)
    assert player.optimizer.judge(trial, 1, []) is Decision.CONTINUE, "between two rungs"


def test_a_deterministic_judge_pauses_all_where_trials_are_promoted() -> None:
    player = deterministic("promotion")
    number = player.next()
    assert player.trials[number].info == {}
    assert player.report(number, 0, 0.9) is Decision.PAUSE


def test_a_deterministic_auto_judge_goes_by_what_was_saved_at_the_start() -> None:
    player = deterministic("auto")
    early, saving = player.next(), player.next()
    player.trials[saving].has_checkpoint = True
    assert player.report(saving, 0, 0.9) is Decision.PAUSE
    assert player.report(early, 0, 0.9) is Decision.CONTINUE, "it began when none was known to save"
    late = len(player.trials)
    while late not in player.trials:
        player.next()
    assert player.trials[late].info["saves"] is True
    assert player.report(late, 0, 0.1) is Decision.PAUSE


class Watching(RandomSampler):
    """Draws at random, and remembers what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, int, float]] = []

    def observe(self, trial: Trial, resource: int, value: float) -> None:
        self.seen.append((trial.number, resource, value))


def test_the_sampler_is_shown_each_trial_once_at_each_rung_and_at_its_end() -> None:
    sampler = Watching()
    player = Player(made(ASHA(variant="promotion", sampler=sampler)))
    number = player.next()
    for step, value in enumerate([0.1, 0.2, 0.3]):
        player.trials[number].curve.add(step, value)
        player.optimizer.judge(player.trials[number], step, [])
    player.end(number, TrialState.COMPLETED, 0.3)
    assert sampler.seen == [(0, 1, 0.1), (0, 3, 0.3), (0, 3, 0.3)]


def test_trials_of_earlier_experiments_are_shown_to_the_sampler_only() -> None:
    sampler = Watching()
    optimizer = made(ASHA(variant="promotion", sampler=sampler, resource_min=2))
    far, near, silent = (Trial({"x": 0.5}, number=number) for number in range(3))
    for step in range(7):
        far.curve.add(step, step / 10)
    near.curve.add(0, 0.5)
    for trial, state in ((far, TrialState.COMPLETED), (near, TrialState.STOPPED), (silent, TrialState.COMPLETED)):
        trial.state, trial.value = state, 0.9
    optimizer.learn_from([far, near, silent])
    assert sampler.seen == [(0, 2, 0.1), (0, 6, 0.5), (0, 7, 0.9), (2, 2, 0.9)]
    player = Player(optimizer)
    assert player.next() == 0
    assert player.milestones[0][:2] == (1, 2), "today's function may count otherwise"


def test_settings_do_not_name_the_sampler_that_is_there_anyway() -> None:
    assert ASHA().settings["sampler"] is None
    sampler = Watching()
    assert ASHA(sampler=sampler).settings["sampler"] is sampler


def test_a_trial_given_up_while_it_waited_is_not_counted_as_running() -> None:
    optimizer = made(ASHA(variant="promotion"), num_trials=3)
    player = Player(optimizer)
    for number in range(3):
        player.next()
        assert player.report(number, 0, -number / 10) is Decision.PAUSE
    player.end(0, TrialState.STOPPED)
    assert player.next() == 1, "a search must complete one"
    assert optimizer.get_suggestion() == IDLE, "it runs"


@pytest.mark.parametrize("factor", [1.0, 0.5, math.nan])
def test_a_factor_that_does_not_reduce_is_refused(factor: float) -> None:
    with pytest.raises(InvalidInputError, match="give a number above 1"):
        ASHA(reduction_factor=factor)


def test_the_smallest_levels_that_make_sense_are_accepted() -> None:
    ASHA(reduction_factor=1.01, resource_min=1, resource_max=1)
    for wrong in (True, 1.0, 0):
        with pytest.raises(InvalidInputError, match="give a whole number of at least 1"):
            ASHA(resource_min=wrong)  # type: ignore[arg-type]


def test_a_function_that_never_reports_is_searched_at_random(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        result = drive(ASHA(), lambda params: params["x"], space=SPACE, num_trials=9)
    assert {trial.state for trial in result.trials} == {TrialState.COMPLETED}
    assert [record.message for record in caplog.records] == [
        "asha: the train function does not report, so that no trial can be stopped early; see trial.report"
    ]


def test_reports_without_the_objective_are_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = made(ASHA())
    assert optimizer.judge(Trial({"x": 0.5}, number=0), 0, []) is Decision.CONTINUE
    assert "name it with metric=" in caplog.text


def test_a_suggestion_takes_no_longer_after_many_trials() -> None:
    optimizer = made(ASHA(variant="promotion"), num_trials=None)
    player = Player(optimizer)
    rng = random.Random(0)
    for _ in range(3000):
        number = player.next()
        player.report(number, len(player.trials[number].curve), rng.random())
    assert len(player.trials) > 1500


def test_mistakes_are_listed_all_at_once() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)reduction_factor=1.*resource_min=0.*Did you mean 'stopping'"):
        ASHA(reduction_factor=1, resource_min=0, variant="stoping")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"resource_max=2: give a number of at least resource_min=3"):
        ASHA(resource_min=3, resource_max=2)


def test_it_is_found_by_name() -> None:
    assert isinstance(resolve_optimizer("ASHA"), ASHA)
