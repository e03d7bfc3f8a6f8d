"""Searches on Spark, end to end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark import SparkContext

from cargobike import experiment, project, trial
from cargobike.core.records import Resources
from cargobike.engines.spark import SparkEngine

pytestmark = pytest.mark.timeout(300)


def train(x: int) -> float:
    print(f"trying {x}")
    trial.report(closeness=-abs(x - 3), step=0)
    return -float((x - 3) ** 2)


def test_a_search_on_a_session_of_our_own() -> None:
    result = experiment.launch(train, {"x": [1, 2, 3, 4]}, engine="spark", workers=2, quiet=True)
    assert result.best is not None
    assert result.best.params == {"x": 3}
    assert [t.state.value for t in result.trials] == ["completed"] * 4
    folder = Path(project.current().root) / "experiments" / result.id / "trials" / "0002"
    assert (folder / "stdout.log").read_text() == "trying 3\n"


def test_a_search_on_a_cluster_leaves_the_session_as_it_was(
    spark_application: SparkContext,
) -> None:
    context = spark_application
    before = context.getConf().getAll(), context.getLocalProperty("spark.jobGroup.id"), context.getJobTags()
    engine = SparkEngine(context)
    assert engine.capacity(Resources(gpus=0)) == 4

    def where(i: int) -> float:
        trial.report(i=float(i))
        return float(os.getppid())

    result = experiment.launch(where, {"i": list(range(12))}, engine=engine, resources=Resources(gpus=0), quiet=True)
    assert len(result.trials) == 12
    assert all(t.state.value == "completed" for t in result.trials)
    assert (context.getConf().getAll(), context.getLocalProperty("spark.jobGroup.id"), context.getJobTags()) == before
    assert context.parallelize(range(10), 2).sum() == 45
