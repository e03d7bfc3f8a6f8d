"""Slide 1: `util.grid_params` and `tflauncher.launch(spark, model, grid)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cargobike import experiment
from cargobike.compat.hops import tflauncher, util
from cargobike.core.errors import SignatureError
from support.slide_functions import model

if TYPE_CHECKING:
    from pyspark import SparkContext

GRID = {"lr": [0.001, 0.01, 0.1], "dropout": [0.5, 0.7]}


def test_three_times_two_values_are_six_trials() -> None:
    path = tflauncher.launch(None, model, util.grid_params(GRID))
    result = experiment.load("last")
    assert path == str(result.folder)
    assert len(result.trials) == 6
    assert result.counts == {"completed": 6}
    assert result.best is not None
    assert result.best.params == {"lr": 0.001, "dropout": 0.5}


def test_the_slide_s_own_mistake_is_said_before_anything_starts() -> None:
    args_dict = {"learning_rate": [0.001, 0.01, 0.1], "dropout": [0.5, 0.7]}
    with pytest.raises(SignatureError, match=r"'learning_rate' is given, but .* Did you mean 'lr'"):
        tflauncher.launch(None, model, util.grid_params(args_dict))
    assert experiment.list() == []


def test_on_spark(spark_application: SparkContext) -> None:
    tflauncher.launch(spark_application, model, util.grid_params(GRID))
    result = experiment.load("last")
    assert (result.asked.placement.engine, result.counts) == ("spark", {"completed": 6})
