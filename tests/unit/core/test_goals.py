from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.core.goals import Goals, pareto_front, read_constraints
from cargobike.core.records import Direction, Trial, TrialState

NUMBERS = st.one_of(st.integers(0, 4).map(float), st.just(math.nan))
OBJECTIVES: dict[str, Direction] = {"a": "max", "b": "min"}


def completed(number: int, a: float, b: float, violation: float = 0.0) -> Trial:
    state = TrialState.COMPLETED
    return Trial({}, number=number, state=state, metrics={"a": a, "b": b}, violation=violation)


def beats(left: Trial, right: Trial) -> bool:
    one, two = left.metrics, right.metrics
    return one["a"] >= two["a"] and one["b"] <= two["b"] and (one["a"], one["b"]) != (two["a"], two["b"])


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([0.0, 0.0, 1.0])), max_size=12))
def test_the_front_is_who_nobody_beats(rows: list[tuple[float, float, float]]) -> None:
    trials = [completed(number, a, b, violation) for number, (a, b, violation) in enumerate(rows)]
    runners = [t for t in trials if t.violation == 0 and not any(math.isnan(v) for v in t.metrics.values())]
    expected = [t.number for t in runners if not any(beats(other, t) for other in runners)]
    assert [trial.number for trial in pareto_front(trials, OBJECTIVES)] == expected


def test_only_completed_trials_are_on_the_front() -> None:
    stopped = Trial({}, number=0, state=TrialState.STOPPED, metrics={"a": 9.0, "b": 0.0})
    assert [trial.number for trial in pareto_front([stopped, completed(1, 1, 1)], OBJECTIVES)] == [1]


def test_violations_add_up_and_a_missing_metric_breaks_a_limit() -> None:
    goals = Goals(constraints=read_constraints(["latency_ms <= 50", "accuracy>=0.5"]))
    assert goals.violation({"latency_ms": 50, "accuracy": 0.5}) == 0
    assert goals.violation({"latency_ms": 53, "accuracy": 0.25}) == pytest.approx(3.25)
    assert goals.violation({"accuracy": 1.0}) == math.inf
    assert goals.violation({"latency_ms": math.nan, "accuracy": 1.0}) == math.inf
    assert goals.names == ("latency_ms", "accuracy")


def test_all_constraints_that_cannot_be_read_are_named() -> None:
    with pytest.raises(InvalidInputError, match="not understood") as caught:
        read_constraints(["lat < 5", "x", "y <= nan", "ok <= 1e-3"])
    assert len(caught.value.mistakes) == 3
