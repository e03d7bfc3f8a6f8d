"""Stop rules: who is stopped when, whatever the direction, the numbering of steps and the values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.asked import Named
from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Decision, Direction, Trial, TrialState
from cargobike.experiments.asking.resolving import stop_rules_of
from cargobike.experiments.asking.setup import end_of
from cargobike.search.rules.stop_rule import StopRule
from cargobike.search.rules.stop_rules import (
    MedianRule,
    PatienceRule,
    PercentileRule,
    TargetReached,
    describe_stop_rule,
    is_told_whole,
    resolve_stop_rule,
    restore_stop_rule,
)

GO_ON, STOP = Decision.CONTINUE, Decision.STOP
VALUES = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([math.nan, math.inf, -math.inf]))
CURVES = st.lists(st.lists(VALUES, min_size=1, max_size=6), min_size=1, max_size=10)


def trial_of(number: int, values: Sequence[float], steps: Sequence[int] | None = None) -> Trial:
    trial = Trial({}, number=number, state=TrialState.RUNNING)
    for step, value in zip(steps or range(len(values)), values, strict=True):
        trial.curve.add(step, value)
    return trial


def verdict(rule: StopRule, curves: Sequence[Sequence[float]], direction: Direction = "max") -> Decision:
    """Judge the first of some trials at its last step."""
    trials = [trial_of(number, values) for number, values in enumerate(curves)]
    return rule.judge(trials[0], len(curves[0]) - 1, trials, direction)


# -- percentile and median -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("own", "expected"), [(0.2, STOP), (0.29, STOP), (0.3, GO_ON), (0.4, GO_ON)])
def test_the_worse_half_is_stopped(own: float, expected: Decision) -> None:
    others = [[0.0, value] for value in (0.1, 0.2, 0.3, 0.4, 0.5)]
    assert verdict(MedianRule(), [[0.0, own], *others]) is expected
    assert verdict(MedianRule(), [[0.0, -own], *([0.0, -value[1]] for value in others)], "min") is expected


def test_a_percentile_says_how_many_may_go_on() -> None:
    others = [[0.0, value / 10] for value in range(1, 10)]
    assert verdict(PercentileRule(25), [[0.0, 0.7], *others]) is GO_ON
    assert verdict(PercentileRule(25), [[0.0, 0.69], *others]) is STOP
    assert verdict(PercentileRule(75), [[0.0, 0.3], *others]) is GO_ON
    assert verdict(PercentileRule(75), [[0.0, 0.29], *others]) is STOP


def test_the_best_value_so_far_counts_not_the_last_one() -> None:
    others = [[0.0, 0.5]] * 5
    assert verdict(MedianRule(), [[0.9, 0.1], *others]) is GO_ON
    assert verdict(MedianRule(), [[0.0, 0.4], *others]) is STOP


def test_only_what_others_had_reached_by_then_counts() -> None:
    others = [[0.0, 0.1, 0.9, 0.9]] * 5
    assert verdict(MedianRule(), [[0.0, 0.2], *others]) is GO_ON


def test_trials_that_did_not_get_as_far_do_not_count() -> None:
    others = [[0.9]] * 5 + [[0.0, 0.1]] * 4
    assert verdict(MedianRule(min_trials=4), [[0.0, 0.2], *others]) is GO_ON
    assert verdict(MedianRule(min_trials=5), [[0.0, 0.0], *others]) is GO_ON, "four are too few"
    assert verdict(MedianRule(min_trials=4), [[0.0, 0.05], *others]) is STOP


def test_running_paused_and_stopped_trials_count_alike() -> None:
    trials = [trial_of(0, [0.0, 0.2])]
    for number, state in enumerate(TrialState, start=1):
        trials.append(trial_of(number, [0.0, 0.5]))
        trials[-1].state = state
    assert MedianRule(min_trials=len(TrialState)).judge(trials[0], 1, trials, "max") is STOP


def test_there_is_a_warm_up_and_an_interval() -> None:
    rule = MedianRule(warmup_steps=2, interval=3)
    others = [[0.5] * 12] * 5
    assert [verdict(rule, [[0.0] * length, *others]) for length in range(1, 13)] == [
        STOP if step in (2, 5, 8, 11) else GO_ON for step in range(12)
    ]


def test_the_interval_holds_for_steps_of_any_size() -> None:
    rule = MedianRule(warmup_steps=100, interval=250)
    others = [trial_of(number, [0.5] * 10, range(0, 1000, 100)) for number in range(1, 6)]
    stopped = []
    for count in range(1, 11):
        steps = range(0, count * 100, 100)
        trial = trial_of(0, [0.0] * count, steps)
        if rule.judge(trial, steps[-1], [trial, *others], "max") is STOP:
            stopped.append(steps[-1])
    assert stopped == [100, 400, 600, 900]


def test_a_step_that_was_reported_again_counts_once() -> None:
    again = [trial_of(number, [0.9, 0.9, 0.1, 0.1], [0, 1, 0, 1]) for number in range(1, 6)]
    trial = trial_of(0, [0.0, 0.2])
    assert MedianRule().judge(trial, 1, [trial, *again], "max") is GO_ON


def test_a_rule_can_be_used_for_another_experiment() -> None:
    rule = MedianRule()
    assert verdict(rule, [[0.0, 0.2], *[[0.0, 0.5]] * 5]) is STOP
    assert verdict(rule, [[0.0, 0.2], *[[0.0, 0.1]] * 5]) is GO_ON


def test_what_is_no_number_is_the_worst() -> None:
    others = [[0.0, 0.5]] * 5
    for strange in (math.nan, math.inf, -math.inf):
        for direction in ("max", "min"):
            assert verdict(MedianRule(), [[strange, strange], *others], direction) is STOP
        assert verdict(MedianRule(), [[0.0, 0.1], *[[strange, strange]] * 5]) is GO_ON
        assert verdict(MedianRule(), [[strange, strange]] * 6) is GO_ON


@given(CURVES, st.sampled_from([5, 25, 50, 80]), st.integers(1, 3))
def test_minimizing_is_maximizing_the_negated(curves: list[list[float]], percentile: int, interval: int) -> None:
    negated = [[-value for value in values] for values in curves]
    for rule in (
        PercentileRule(percentile, warmup_steps=0, min_trials=1, interval=interval),
        PatienceRule(interval),
        PatienceRule(2, min_delta=1.0),
    ):
        assert verdict(rule, curves, "max") is verdict(rule, negated, "min")


@given(CURVES)
def test_the_best_trial_of_a_step_is_never_stopped(curves: list[list[float]]) -> None:
    step = len(curves[0]) - 1
    finite = [[v for v in values[: step + 1] if math.isfinite(v)] for values in curves]
    if finite[0] and all(not other or max(finite[0]) >= max(other) for other in finite):
        assert verdict(MedianRule(min_trials=1, warmup_steps=0), curves) is GO_ON


# -- patience --------------------------------------------------------------------------------------------------------


def test_a_trial_that_stands_still_is_stopped() -> None:
    leader = [0.9]
    assert verdict(PatienceRule(3), [[0.1, 0.5, 0.4, 0.5], leader]) is GO_ON
    assert verdict(PatienceRule(3), [[0.1, 0.5, 0.4, 0.5, 0.5], leader]) is STOP
    assert verdict(PatienceRule(3), [[0.1, 0.5, 0.4, 0.5, 0.51], leader]) is GO_ON
    assert verdict(PatienceRule(3, min_delta=0.1), [[0.1, 0.5, 0.4, 0.5, 0.51], leader]) is STOP
    assert verdict(PatienceRule(3), [[math.nan] * 4, leader]) is STOP


def test_many_small_improvements_are_an_improvement() -> None:
    creeping = [0.5 + step / 100 for step in range(10)]
    assert verdict(PatienceRule(3, min_delta=0.025), [creeping, [0.9]]) is GO_ON


def test_the_leader_may_stand_still() -> None:
    assert verdict(PatienceRule(2), [[0.9, 0.9, 0.9, 0.9], [0.5, 0.8]]) is GO_ON
    assert verdict(PatienceRule(2), [[0.9, 0.9, 0.9, 0.9], [0.5, 0.95]]) is STOP


# -- target ----------------------------------------------------------------------------------------------------------


def ended(value: float | None, state: TrialState = TrialState.COMPLETED) -> Trial:
    return Trial({}, number=4, state=state, value=value)


def test_a_target_is_reached_by_a_final_value_only() -> None:
    rule = TargetReached(0.9)
    assert rule.reason_to_end(ended(0.9), "max") == "trial 4 reached the target of 0.9"
    assert rule.reason_to_end(ended(0.89), "max") is None
    assert rule.reason_to_end(ended(0.9), "min") is not None
    assert rule.reason_to_end(ended(0.91), "min") is None
    assert rule.reason_to_end(ended(None, TrialState.PAUSED), "max") is None
    for strange in (math.nan, math.inf, -math.inf):
        assert rule.reason_to_end(ended(strange), "max") is None
    assert verdict(rule, [[0.95], [0.1]]) is GO_ON


def test_the_search_ends_for_the_first_rule_that_has_a_reason() -> None:
    reason_to_end = end_of((MedianRule(), TargetReached(2.0), TargetReached(1.0)), "max")
    assert reason_to_end is not None
    assert reason_to_end(ended(1.5)) == "trial 4 reached the target of 1"
    assert reason_to_end(ended(0.5)) is None
    assert end_of((MedianRule(), PatienceRule()), "max") is None


# -- names and mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_name", "kind"),
    [("median", MedianRule), ("Median", MedianRule), ("percentile_rule", PercentileRule), ("patience", PatienceRule)],
)
def test_rules_are_found_by_name(given_name: str, kind: type) -> None:
    assert type(resolve_stop_rule(given_name)) is kind
    assert [type(rule) for rule in stop_rules_of(given_name)] == [kind]


def test_rules_may_be_mixed() -> None:
    target = TargetReached(0.9)
    rules = stop_rules_of(["median", target, "patience"])
    assert [type(rule) for rule in rules] == [MedianRule, TargetReached, PatienceRule]
    assert stop_rules_of(None) == stop_rules_of(()) == ()
    assert stop_rules_of(target) == (target,)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ("medain", r"no stop rule 'medain'; known are median.*Did you mean 'median'"),
        ("target", r"give an object such as TargetReached\(0.95\)"),
        (3, r"early_stop=3 is not a stop rule; give one of median, percentile, patience, or an object with"),
        (TargetReached, r"is not a stop rule"),
    ],
)
def test_what_is_no_rule_is_refused(wrong: Any, match: str) -> None:
    with pytest.raises(InvalidInputError, match=match):
        stop_rules_of(wrong)


def test_mistakes_are_listed_all_at_once() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)percentile=100.*warmup_steps=-1.*min_trials=0.*interval=0"):
        PercentileRule(100, warmup_steps=-1, min_trials=0, interval=0)
    with pytest.raises(InvalidInputError, match=r"(?s)patience=0.*min_delta=-1"):
        PatienceRule(0, min_delta=-1)
    with pytest.raises(InvalidInputError, match=r"TargetReached\(nan\)"):
        TargetReached(math.nan)


# -- what is remembered, and what is not there -------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [MedianRule(min_trials=1), PercentileRule(50, min_trials=1), PatienceRule(1)])
@pytest.mark.parametrize("direction", ["max", "min"])
def test_a_trial_without_reports_goes_on(rule: StopRule, direction: Direction) -> None:
    others = [trial_of(number, [0.5, 0.5, 0.5]) for number in range(1, 7)]
    silent = trial_of(0, [])
    assert rule.judge(silent, 2, [silent, *others], direction) is GO_ON
    assert rule.judge(others[0], 2, [silent, others[0]], direction) is verdict(rule, [[0.5] * 3], direction)


def test_what_is_remembered_of_a_curve_holds_while_it_is_the_same() -> None:
    rule = MedianRule(min_trials=1)
    own, other = trial_of(0, [0.3, 0.5]), trial_of(1, [0.4, 0.4])
    assert rule.judge(own, 1, [own, other], "max") is GO_ON
    own.curve.add(2, 0.5)
    other.curve.add(2, 0.9)
    assert rule.judge(own, 2, [own, other], "max") is STOP
    assert rule.judge(own, 2, [own, other], "min") is GO_ON


def test_the_first_report_is_judged_where_no_warm_up_is_asked_for() -> None:
    others = [[0.5]] * 5
    assert verdict(MedianRule(warmup_steps=0), [[0.4], *others]) is STOP
    assert verdict(MedianRule(warmup_steps=0), [[0.6], *others]) is GO_ON


def test_between_two_trials_the_limit_lies_between_their_values() -> None:
    others = [[0.0, value] for value in (0.1, 0.2, 0.3, 0.4)]
    assert verdict(MedianRule(min_trials=4), [[0.0, 0.26], *others]) is GO_ON
    assert verdict(MedianRule(min_trials=4), [[0.0, 0.24], *others]) is STOP


def test_a_percentile_may_be_a_fraction() -> None:
    assert PercentileRule(0.5).percentile == 0.5
    for percentile in (0, 100):
        with pytest.raises(InvalidInputError, match="between 0 and 100"):
            PercentileRule(percentile)


def test_the_smallest_settings_that_make_sense_are_accepted() -> None:
    rule = PercentileRule(50, warmup_steps=0, min_trials=1, interval=1)
    assert (rule.warmup_steps, rule.min_trials, rule.interval) == (0, 1, 1)
    assert (PatienceRule(1, min_delta=0).patience, MedianRule().percentile) == (1, 50.0)


def test_two_that_lead_together_may_both_stand_still() -> None:
    assert verdict(PatienceRule(2), [[0.9] * 4, [0.9] * 4]) is GO_ON
    assert verdict(PatienceRule(2), [[0.1] * 4, [math.nan] * 4]) is GO_ON


def test_where_the_next_trial_has_no_number_the_limit_is_the_one_before_it() -> None:
    others = [[0.5], [math.nan]]
    rule = MedianRule(warmup_steps=0, min_trials=2)
    assert verdict(rule, [[0.5], *others]) is GO_ON
    assert verdict(rule, [[0.4], *others]) is STOP


def test_the_last_word_about_a_step_counts_for_all_later_ones() -> None:
    own = trial_of(0, [0.0, 0.2, 0.2])
    again = trial_of(1, [0.1, 0.9, 0.1, 0.15], [0, 1, 1, 2])
    rule = MedianRule(min_trials=1)
    assert rule.judge(own, 2, [own, again], "max") is GO_ON
    assert rule.judge(trial_of(2, [0.0, 0.0, 0.12]), 2, [again], "max") is STOP


class Homemade:
    """A rule that is not ours."""

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        return GO_ON


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (MedianRule(interval=3), Named("median", settings={"warmup_steps": 1, "min_trials": 5, "interval": 3})),
        (PatienceRule(7), Named("patience", settings={"patience": 7, "min_delta": 0.0})),
        (TargetReached(0.9), Named("target", settings={"value": 0.9})),
    ],
)
def test_a_rule_can_be_told_as_data_and_made_again(rule: StopRule, told: Named) -> None:
    assert describe_stop_rule(rule) == told
    again = restore_stop_rule(told)
    assert type(again) is type(rule)
    assert describe_stop_rule(again) == told
    assert is_told_whole(rule, told)


def test_what_cannot_be_made_again_is_said() -> None:
    told = describe_stop_rule(Homemade())
    assert (told.name, told.path.rpartition(":")[2]) == ("Homemade", "Homemade")
    assert is_told_whole(Homemade(), told) is False
    with pytest.raises(InvalidInputError, match=r"the stop rule median\(speed=3\) cannot be made"):
        restore_stop_rule(Named("median", settings={"speed": 3}))
    with pytest.raises(InvalidInputError, match="no stop rule 'Homemade'"):
        restore_stop_rule(told)


def test_an_object_with_a_judge_is_a_rule() -> None:
    rule = Homemade()
    assert resolve_stop_rule(rule) is rule
    for wrong in (Homemade, object(), None):
        with pytest.raises(InvalidInputError, match="is not a stop rule"):
            resolve_stop_rule(wrong)


def test_an_improvement_is_as_large_downwards_as_upwards() -> None:
    falling = [1.0, 0.94, 0.94, 0.94]
    assert verdict(PatienceRule(3, min_delta=0.1), [falling, [0.5]], "min") is STOP
    assert verdict(PatienceRule(3, min_delta=0.05), [falling, [0.5]], "min") is GO_ON
