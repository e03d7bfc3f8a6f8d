from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.analysis.importance import importance
from cargobike.analysis.pareto import front_of, tradeoff
from cargobike.analysis.progress import best_so_far
from cargobike.analysis.views import seen_by
from cargobike.core.errors import InvalidInputError
from cargobike.core.goals import pareto_front
from cargobike.core.records import Direction
from support.sample_records import compromising, lively

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30)
ways = st.sampled_from(["max", "min"])


@given(points=pairs, first=ways, second=ways)
def test_the_front_is_what_nothing_dominates(
    points: list[tuple[int, int]], first: Direction, second: Direction
) -> None:
    table = np.array(points, dtype=float)
    costs = table * [-1 if first == "max" else 1, -1 if second == "max" else 1]

    def is_beaten(index: int) -> bool:
        return any((other <= costs[index]).all() and (other < costs[index]).any() for other in costs)

    assert front_of(table, (first, second)).tolist() == [not is_beaten(index) for index in range(len(points))]


def test_directions_default_to_the_search_and_to_costs() -> None:
    found = tradeoff(lively(), "accuracy", "latency_ms")
    assert found.directions == ("max", "min")
    assert all(trial.state == "completed" for trial in found.trials)
    assert tradeoff(lively(direction="min"), "latency_ms", "accuracy").directions == ("min", "min")
    assert tradeoff(lively(), "accuracy", "latency_ms", {"latency_ms": "max"}).directions == ("max", "max")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        tradeoff(lively(), "acuracy", "latency_ms", {"latency_ms": "up", "loss": "min"})  # type: ignore[dict-item]
    said = str(caught.value)
    assert "there is no metric 'acuracy'. Did you mean 'accuracy'?" in said
    assert "must be 'max' or 'min', not 'up'" in said
    assert "'loss' is not compared here" in said


def test_the_front_of_two_objectives_is_that_of_the_search() -> None:
    record = compromising()
    found = tradeoff(record, "latency_ms", "accuracy")
    assert found.directions == ("min", "max")
    ours = [trial.number for trial, is_on in zip(found.trials, found.is_on_front, strict=True) if is_on]
    assert ours == [trial.number for trial in pareto_front(record.trials.values(), record.goals.objectives)]
    broken = [trial.number for trial in found.trials if trial.violation > 0]
    assert broken
    assert not set(ours) & set(broken)


def test_an_experiment_can_be_seen_by_any_of_its_metrics() -> None:
    record = compromising()
    assert record.best is None
    by_first, by_latency, by_time = seen_by(record), seen_by(record, "latency_ms"), seen_by(record, "duration_s")
    assert by_first.best is not None
    assert by_first.best.value == max(t.metrics["accuracy"] for t in record.trials.values() if not t.violation > 0)
    assert by_latency.best is not None
    assert by_latency.best.value == min(t.metrics["latency_ms"] for t in record.trials.values())
    assert by_time.trials[0].value == record.trials[0].duration_s
    assert record.trials[0].value is None, "the experiment itself stays as it was"
    assert next(iter(importance(record, metric="latency_ms").main)) == "layers"
    with pytest.raises(InvalidInputError, match=r"no metric 'latency'; known are .* Did you mean 'latency_ms'\?"):
        seen_by(record, "latency")
    assert seen_by(lively()).best == lively().best


def test_a_trial_that_breaks_a_limit_is_never_the_best_so_far() -> None:
    record = seen_by(compromising())
    series = best_so_far(record)
    assert len(series.trials) > 0
    assert all(not record.trials[number].violation > 0 for number in series.trials)
    assert record.best is not None
    assert series.best[-1] == record.best.value
