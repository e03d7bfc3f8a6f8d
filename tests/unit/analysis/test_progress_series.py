from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.analysis.progress import best_so_far, learning_curves, settled
from cargobike.analysis.scores import common_step, metric_names, metric_of, objective_name, score_at, thinned
from cargobike.core.records import Curve, Direction
from support.sample_records import Story, lively


@given(
    values=st.lists(st.sampled_from([0.1, 0.4, 0.4, 0.9, math.nan, math.inf]), max_size=12),
    direction=st.sampled_from(["max", "min"]),
)
def test_the_last_of_the_series_is_the_best_of_all(values: list[float], direction: Direction) -> None:
    story = Story(direction=direction)
    for value in values:
        story.complete(story.start({"x": value}), value)
    record = story.end()
    series = best_so_far(record)
    if record.best is None:
        assert len(series.best) == 0
        return
    assert series.best[-1] == record.best.value
    steps = np.diff(series.best) * (1 if direction == "max" else -1)
    assert (steps[:-1] > 0).all()
    assert (steps >= 0).all()
    assert series.at[-1] == len(values) - 1
    assert series.trials[0] == next(i for i, value in enumerate(values) if math.isfinite(value))


def test_by_time_counts_when_trials_ended_not_their_numbers() -> None:
    story = Story()
    slow, quick = story.start({"x": 1}), story.start({"x": 2})
    story.complete(quick, 0.5)
    story.complete(slow, 0.9)
    record = story.end()
    assert best_so_far(record, "trial").trials == [0, 0]
    by_time = best_so_far(record, "time")
    assert by_time.trials == [quick, slow]
    assert by_time.at.tolist() == [3.0, 4.0]


def test_stopped_and_failed_trials_never_set_the_best() -> None:
    story = Story(metric="accuracy")
    good = story.start({"x": 1})
    story.report(good, [0.99])
    story.stop(good)
    story.complete(story.start({"x": 2}), 0.5)
    assert best_so_far(story.end()).best.tolist() == [0.5]


def test_a_later_attempt_replaces_what_it_reports_again() -> None:
    curve = Curve()
    for step, value in ((0, 1.0), (1, 2.0), (2, 3.0), (1, 20.0), (2, math.nan), (3, 40.0)):
        curve.add(step, value)
    steps, values = settled(curve)
    assert steps.tolist() == [0, 1, 2, 3]
    assert repr(values.tolist()) == "[1.0, 20.0, nan, 40.0]"


def test_long_curves_keep_their_ends_and_extremes() -> None:
    story = Story(metric="accuracy")
    values = [math.sin(step / 40) for step in range(5000)]
    values[1234], values[4321] = 9.0, -9.0
    number = story.start({"x": 1})
    story.report(number, values)
    (curve,) = learning_curves(story.so_far(), most_points=100)
    assert len(curve.steps) <= 102
    assert (curve.steps[0], curve.steps[-1]) == (0, 4999)
    assert (curve.values.max(), curve.values.min()) == (9.0, -9.0)


def test_of_many_curves_the_best_stay() -> None:
    record = lively(200)
    curves = learning_curves(record, most=20)
    assert len(curves) == 20
    assert record.best is not None
    assert record.best.number in [curve.trial.number for curve in curves]
    assert [curve.trial.number for curve in curves] == sorted(curve.trial.number for curve in curves)
    assert {curve.trial.state.value for curve in curves} >= {"completed", "stopped"}


@given(count=st.integers(0, 300), most=st.integers(2, 50))
def test_thinning_keeps_order_number_and_the_best(count: int, most: int) -> None:
    items = [(index * 37) % 101 for index in range(count)]
    kept = thinned(list(enumerate(items)), most, lambda item: item[1])
    assert len(kept) == min(count, most)
    assert [index for index, _ in kept] == sorted(index for index, _ in kept)
    if items:
        assert max(value for _, value in kept) == max(items)


@pytest.mark.parametrize(("header", "name"), [("accuracy", "accuracy"), (None, "loss")])
def test_the_objective_has_a_name(header: str | None, name: str) -> None:
    story = Story(metric=header)
    story.report(story.start({"x": 1}), [0.5], name="loss")
    assert objective_name(story.so_far()) == name


def test_metrics_of_a_trial_are_found_by_name() -> None:
    record = lively()
    assert metric_names(record) == ["accuracy", "latency_ms", "duration_s"]
    trial = record.trials[0]
    assert metric_of(record, trial, "accuracy") == metric_of(record, trial, "value") == trial.value
    assert metric_of(record, trial, "latency_ms") == 5 + trial.params["layers"]
    assert metric_of(record, trial, "duration_s") == trial.duration_s
    assert metric_of(record, record.trials[3], "accuracy") is None, "a stopped trial has no final metric"


def test_the_score_at_a_step_is_the_latest_report_of_it() -> None:
    story = Story(metric="accuracy")
    number = story.start({"x": 1})
    story.report(number, [0.1, 0.2])
    story.report(number, [0.3, 0.4], first=1)
    trial = story.so_far().trials[number]
    assert [score_at(trial, step) for step in range(4)] == [0.1, 0.3, 0.4, None]


def test_the_common_step_is_the_last_that_half_of_the_trials_reported() -> None:
    story = Story(metric="accuracy")
    for length in (1, 3, 3, 9):
        story.report(story.start({"x": length}), [0.1] * length)
    record = story.so_far()
    assert common_step(record, 2) == 2
    assert common_step(record, 4) == 0
    assert common_step(record, 5) is None
    assert common_step(Story().so_far(), 1) is None
