from __future__ import annotations

import math

import numpy as np
import pytest

from cargobike.analysis.axes import Axis, axes_of, positions_of, text_of
from cargobike.search.spaces.space import Searchspace
from support.sample_records import SPACE, Story, lively


def test_the_space_says_what_axes_are() -> None:
    axes = {axis.name: axis for axis in axes_of(lively())}
    assert list(axes) == list(SPACE.names)
    assert (axes["lr"].kind, axes["lr"].scale, axes["lr"].ends) == ("number", "log", (-4.0, -1.0))
    assert (axes["layers"].kind, axes["layers"].is_whole, axes["layers"].ends) == ("number", True, (1.0, 5.0))
    assert (axes["act"].labels, axes["act"].has_order) == (("relu", "gelu", "silu"), False)
    assert (axes["batch"].labels, axes["batch"].has_order) == (("32", "64", "128"), True)
    assert axes["momentum"].presence == 0.5
    assert all(axes[name].presence == 1 for name in SPACE.names if name != "momentum")


def test_positions_follow_the_scale_and_are_nan_where_a_parameter_is_absent() -> None:
    record = lively()
    axes = axes_of(record)
    trials = list(record.trials.values())
    table = positions_of(axes, trials)
    for trial, row in zip(trials, table, strict=True):
        assert row[0] == pytest.approx(math.log10(trial.params["lr"]))
        assert row[3] == [32, 64, 128].index(trial.params["batch"])
        assert np.isnan(row[5]) == ("momentum" not in trial.params)
        if "momentum" in trial.params:
            assert axes[5].unstretched(row[5]) == pytest.approx(trial.params["momentum"])


@pytest.mark.parametrize("scale", ["linear", "log", "reverse-log"])
def test_stretching_can_be_undone(scale: str) -> None:
    for low, high in ((0.5, 0.99), (2.0, 30.0)):
        axis = Axis("x", "number", scale, low, high)
        assert axis.ends[0] < axis.ends[1]
        for value in np.linspace(low, high, 7):
            assert axis.unstretched(axis.stretched(value)) == pytest.approx(value)


def test_parameters_without_a_space_are_understood_from_their_values() -> None:
    story = Story()
    for index in range(12):
        params = {
            "few": index % 3,
            "many": index + 0.5,
            "wide": 10.0**-index,
            "fixed": 1,
            "mixed": [1, "1", True][index % 3],
        }
        if index % 4 == 0:
            params["rare"] = "here"
        story.start(params)
    axes = {axis.name: axis for axis in axes_of(story.so_far())}
    assert "fixed" not in axes
    assert axes["few"].labels == ("0", "1", "2")
    assert (axes["many"].kind, axes["many"].scale, axes["many"].ends) == ("number", "linear", (0.5, 11.5))
    assert (axes["wide"].kind, axes["wide"].scale) == ("number", "log")
    assert axes["mixed"].labels == ("1", "'1'", "True")
    assert axes["rare"].presence == 0.25


def test_choices_survive_a_journal_and_true_is_not_one() -> None:
    story = Story(Searchspace(shape=[(1, 2), (3,)], flag=[True, False, 1]))
    for shape, flag in (([1, 2], True), ([3], 1), ([1, 2], False)):
        story.start({"shape": shape, "flag": flag})
    record = story.so_far()
    axes = axes_of(record)
    assert positions_of(axes, list(record.trials.values())).tolist() == [[0, 0], [1, 2], [0, 1]]


def test_values_outside_the_described_range_widen_the_axis() -> None:
    story = Story(Searchspace(dropout=("DOUBLE", [0.1, 0.5])))
    story.start({"dropout": 0.3})
    story.start({"dropout": 0.0})
    assert axes_of(story.so_far())[0].ends == (0.0, 0.5)


def test_values_are_told_in_few_characters() -> None:
    assert text_of(0.1234567891) == "0.123457"
    assert text_of([1, 2]) == "[1, 2]"
    assert text_of("x" * 100, 10) == "xxxxxxxxx…"
