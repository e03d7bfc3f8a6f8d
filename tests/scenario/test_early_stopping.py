"""Searches that do not train everything to the end, on real processes."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Literal

import pytest

from cargobike import Searchspace, experiment, trial
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import Direction, Trial, TrialState
from cargobike.experiments.results.result import Result
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.hyperband import Hyperband
from cargobike.search.optimizers.pbt import PopulationBasedTraining
from cargobike.search.rules.stop_rules import MedianRule, PatienceRule, TargetReached
from support.cut_copies import cut_copy

EPOCHS = 9
SPACE = Searchspace(x=("DOUBLE", [0.0, 1.0]))


def score(x: float, epoch: int) -> float:
    return x * (1 - 0.5 ** (epoch + 1))


def train_then_report(x: float, sign: int = 1) -> float:
    """Saves, then reports; counts from 0."""
    for epoch in range(trial.checkpoint.load(0), EPOCHS):
        print("epoch", epoch)
        trial.checkpoint.save(epoch + 1)
        trial.report(score=sign * score(x, epoch), step=epoch)
    return sign * score(x, EPOCHS - 1)


def report_then_save(x: float, sign: int = 1) -> float:
    """Reports, then saves; counts from 1."""
    for epoch in range(trial.checkpoint.load(0), EPOCHS):
        print("epoch", epoch)
        trial.report(score=sign * score(x, epoch), step=epoch + 1)
        trial.checkpoint.save(epoch + 1)
    return sign * score(x, EPOCHS - 1)


def without_checkpoints(x: float, sign: int = 1) -> float:
    for epoch in range(EPOCHS):
        print("epoch", epoch)
        trial.report(score=sign * score(x, epoch), step=epoch)
    return sign * score(x, EPOCHS - 1)


def silent(x: float) -> float:
    return x


def stubborn(x: float) -> float:
    """Reports what no rule likes, except where `x` is large."""
    for epoch in range(EPOCHS):
        trial.report(score=x, step=epoch)
    return x


def epochs_run(result: Result, one: Trial) -> list[int]:
    """Return the epochs that a trial really trained, over all of its attempts."""
    return [int(line.split()[1]) for line in result.logs(one).splitlines()]


DIRECTIONS: list[tuple[Direction, int]] = [("max", 1), ("min", -1)]


@pytest.mark.parametrize(("direction", "sign"), DIRECTIONS)
@pytest.mark.parametrize("function", [train_then_report, report_then_save])
def test_promoted_trials_go_on_where_they_were(function: Callable[..., float], direction: Direction, sign: int) -> None:
    result = experiment.launch(
        functools.partial(function, sign=sign),
        SPACE,
        optimizer=ASHA(variant="promotion"),
        num_trials=12,
        direction=direction,
        workers=2,
        seed=5,
        quiet=True,
    )
    assert len(result.trials) == 12
    for one in result.trials:
        assert epochs_run(result, one) == list(range(len(one.curve))), "no epoch is left out or trained twice"
    lengths = Counter(len(one.curve) for one in result.trials)
    assert set(lengths) <= {1, 3, EPOCHS}
    assert lengths[1] >= 12 / 2
    assert 1 <= lengths[EPOCHS] <= 4
    resumed = [one for one in result.trials if one.attempts > 1]
    assert resumed, "nobody was paused and resumed"
    assert result.best is not None
    best_x = sorted((one.params["x"] for one in result.trials), reverse=True)[:3]
    assert result.best.params["x"] in best_x
    assert {one.state for one in result.trials} == {TrialState.COMPLETED, TrialState.STOPPED}
    assert all(one.value is None for one in result.of_state("stopped"))


@pytest.mark.parametrize(("direction", "sign"), DIRECTIONS)
@pytest.mark.parametrize("variant", ["stopping", "auto"])
def test_stopped_trials_end_at_the_step_that_was_decided(
    variant: Literal["stopping", "auto"], direction: Direction, sign: int
) -> None:
    result = experiment.launch(
        functools.partial(without_checkpoints, sign=sign),
        SPACE,
        optimizer=ASHA(variant=variant),
        num_trials=12,
        direction=direction,
        workers=2,
        seed=5,
        quiet=True,
    )
    assert len(result.trials) == 12
    for one in result.trials:
        assert one.attempts == 1
        assert epochs_run(result, one) == list(range(len(one.curve)))
        assert len(one.curve) in (1, 3, EPOCHS)
        assert (one.state is TrialState.COMPLETED) == (len(one.curve) == EPOCHS)
    stopped = result.of_state("stopped")
    assert len(stopped) >= 4
    assert {one.error for one in stopped} == {"ASHA"}


def test_auto_finds_out_that_there_are_checkpoints() -> None:
    result = experiment.launch(report_then_save, SPACE, optimizer="asha", num_trials=20, workers=2, seed=2, quiet=True)
    assert any(one.attempts > 1 for one in result.trials), "nobody was paused and resumed"
    assert len(result.trials) == 20
    for one in result.trials:
        assert epochs_run(result, one) == list(range(len(one.curve)))


def test_a_search_without_timing_is_the_same_every_time() -> None:
    runs = [
        experiment.launch(
            report_then_save,
            SPACE,
            optimizer=ASHA(variant="promotion"),
            num_trials=9,
            workers=2,
            seed=1,
            deterministic=True,
            quiet=True,
        )
        for _ in range(2)
    ]
    told = [[(one.params, list(one.curve), one.state, one.value, one.attempts) for one in run.trials] for run in runs]
    assert told[0] == told[1]
    assert any(one.attempts > 1 for one in runs[0].trials)


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_search_whose_driver_died_goes_on(deterministic: bool) -> None:
    whole = experiment.launch(
        report_then_save,
        SPACE,
        optimizer=ASHA(variant="promotion"),
        num_trials=9,
        workers=2,
        seed=1,
        deterministic=deterministic,
        quiet=True,
    )
    length = len(ExperimentFolder(whole.folder).journal.read_bytes().splitlines())
    for lines in (length // 3, 2 * length // 3):
        resumed = experiment.resume(cut_copy(whole, lines), quiet=True)
        assert resumed.state == "completed"
        assert [one.params for one in resumed.trials] == [one.params for one in whole.trials]
        assert resumed.best is not None
        if deterministic:
            assert [one.state for one in resumed.trials] == [one.state for one in whole.trials]
            assert whole.best is not None
            assert (resumed.best.number, resumed.best.value) == (whole.best.number, whole.best.value)


def test_a_finished_search_is_given_more_trials() -> None:
    first = experiment.launch(
        report_then_save, SPACE, optimizer=ASHA(variant="promotion"), num_trials=9, workers=2, seed=1, quiet=True
    )
    assert first.best is not None
    before = first.best.value or 0.0
    more = experiment.resume(first.id, num_trials=18, quiet=True)
    assert len(more.trials) == 18
    assert [one.params for one in more.trials[:9]] == [one.params for one in first.trials[:9]]
    assert len({len(one.curve) for one in more.trials[9:]}) > 1, "the new ones are compared with the old ones"
    assert more.best is not None
    assert (more.best.value or 0.0) >= before
    again = experiment.resume(first.id, num_trials=21, quiet=True)
    assert len(again.trials) == 21


def test_hyperband_on_real_processes() -> None:
    result = experiment.launch(
        report_then_save,
        SPACE,
        optimizer=Hyperband(resource_max=EPOCHS),
        num_trials=14,
        workers=2,
        seed=1,
        quiet=True,
    )
    shortest = {0: 1, 1: 3, 2: EPOCHS}
    assert len(result.trials) == 14
    assert {one.info["bracket"] for one in result.trials} == set(shortest)
    for one in result.trials:
        assert epochs_run(result, one) == list(range(len(one.curve)))
        assert len(one.curve) >= shortest[one.info["bracket"]]
    assert result.best is not None


@pytest.mark.parametrize(("direction", "sign"), DIRECTIONS)
def test_the_median_rule_stops_those_that_fall_behind(direction: Direction, sign: int) -> None:
    xs = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.1, 0.2, 0.95]
    result = experiment.launch(
        functools.partial(without_checkpoints, sign=sign),
        [{"x": x} for x in xs],
        early_stop=MedianRule(warmup_steps=2, min_trials=5),
        direction=direction,
        workers=1,
        quiet=True,
    )
    assert [len(one.curve) for one in result.trials] == [9, 9, 9, 9, 9, 3, 3, 3, 9]
    assert len(result.of_state("stopped")) == 3
    for one in result.of_state("stopped"):
        assert one.value is None
        assert one.error == "MedianRule"
        assert epochs_run(result, one) == [0, 1, 2]
    assert result.best is not None
    assert result.best.params == {"x": 0.95}


def test_rules_are_found_by_name_and_go_with_any_optimizer() -> None:
    result = experiment.launch(
        without_checkpoints,
        SPACE,
        optimizer="random",
        num_trials=14,
        early_stop="median",
        workers=2,
        quiet=True,
        seed=4,
    )
    assert {one.error for one in result.of_state("stopped")} == {"MedianRule"}
    assert result.best is not None


def test_patience_spares_the_leader() -> None:
    result = experiment.launch(stubborn, {"x": [0.5, 0.9, 0.3]}, early_stop=PatienceRule(3), workers=1, quiet=True)
    assert [one.state.value for one in result.trials] == ["completed", "completed", "stopped"]
    assert len(result.trials[2].curve) == 4


@pytest.mark.parametrize(("direction", "target"), [("max", 0.7), ("min", 0.3)])
def test_a_target_ends_the_search(direction: Direction, target: float) -> None:
    xs = [0.5, 0.4, 0.6, 0.8, 0.2, 0.9, 0.1, 0.95]
    result = experiment.launch(
        lambda x: x, {"x": xs}, early_stop=TargetReached(target), direction=direction, workers=1, quiet=True
    )
    assert result.state == "completed"
    assert result.reason == f"trial {3 if direction == 'max' else 4} reached the target of {target}"
    assert result.best is not None
    assert result.best.metric == (0.8 if direction == "max" else 0.2)
    assert len(result.of_state("completed")) == (4 if direction == "max" else 5)


def learn(rate: float) -> float:
    """What it has learned is in its checkpoint: the best rate is 0.5, and a copy keeps what its parent knew."""
    state = trial.checkpoint.load({"epoch": 0, "known": 0.0, "rates": []})
    for epoch in range(state["epoch"], 16):
        known = state["known"] + 1 - abs(rate - 0.5)
        state = {"epoch": epoch + 1, "known": known, "rates": [*state["rates"], rate]}
        trial.checkpoint.save(state)
        trial.report(known=known, step=epoch)
    assert len(state["rates"]) == 16
    print("rates", state["rates"])
    return float(state["known"])


def ancestor(result: Result, one: Trial) -> int:
    return ancestor(result, result.trials[one.info["parent"]]) if "parent" in one.info else one.number


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_population_learns_from_its_best(deterministic: bool) -> None:
    result = experiment.launch(
        learn,
        Searchspace(rate=("DOUBLE", [0.0, 1.0])),
        optimizer=PopulationBasedTraining(4, interval=4, resource_max=16),
        num_trials=12,
        workers=2,
        seed=3,
        deterministic=deterministic,
        quiet=True,
    )
    completed = len(result.of_state("completed"))
    assert completed == 4 if deterministic else 1 <= completed <= 4, "who is stopped last may find no one to copy"
    children = [one for one in result.trials if "parent" in one.info]
    assert children or not deterministic, "without it the best may be done before the worst comes"
    for child in children:
        parent = result.trials[child.info["parent"]]
        assert 0 not in child.curve.steps, "it begins where its parent was"
        assert parent.number < child.number
        replaced = result.trials[child.info["replaces"]]
        assert replaced.state is TrialState.STOPPED
        assert replaced.info["slot"] == child.info["slot"]
    for child in children:
        if child.state is TrialState.COMPLETED:
            rates = eval(result.logs(child).removeprefix("rates "))
            own = len(child.curve)
            assert rates[16 - own :] == [child.params["rate"]] * own
            assert rates[0] == result.trials[ancestor(result, child)].params["rate"]


def test_a_stop_rule_without_any_report_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    result = experiment.launch(silent, SPACE, num_trials=3, workers=1, early_stop="median", quiet=True)

    assert result.counts == {"completed": 3}
    said = [record.getMessage() for record in caplog.records if "without a report" in record.getMessage()]
    assert said == [
        "trial 0 has ended without a report of its score, so that no trial can be stopped early; call "
        "`trial.report(score=…, step=…)` in the train function, or leave early_stop out."
    ]
