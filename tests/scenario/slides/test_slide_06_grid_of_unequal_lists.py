"""Slide 6: `experiment.launch(train, {three values, two values})`, "launch 6 executors"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.compat.hops import experiment
from support.slide_functions import train

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARGS = {"learning_rate": [0.001, 0.0005, 0.0001], "dropout": [0.45, 0.7]}


def test_exactly_six_runs() -> None:
    path, outputs = experiment.launch(train, ARGS)
    assert path.startswith("/")
    assert len(outputs) == 6
    best = max(outputs, key=lambda one: one["metric"])
    result = experiment.launch(train, ARGS).result
    assert result.best.params == {"learning_rate": 0.001, "dropout": 0.45}
    assert best["metric"] == result.best.value


def test_on_spark_as_the_program_s_own_session(spark_application: SparkSession) -> None:
    returned = experiment.launch(train, ARGS)
    assert returned.result.asked.placement.engine == "spark"
    assert returned.result.counts == {"completed": 6}
