"""Maggy's scripts run on the Spark that a program has started, and a notebook's own calls say nothing about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cargobike import experiment as own
from cargobike.compat.maggy import Searchspace, experiment
from cargobike.compat.maggy.experiment_config import OptimizationConfig

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.timeout(300)


def test_trials_run_on_the_executors_of_the_context_that_is_there(spark_application: SparkContext) -> None:
    driver = spark_application.applicationId

    def train(x: float, reporter: Any) -> float:
        for step in range(3):
            reporter.broadcast(x, step)
        return x

    config = OptimizationConfig(4, "randomsearch", Searchspace(x=("DOUBLE", [0, 1])), direction="min")
    result = experiment.lagom(train, config, quiet=True, workers=2)
    kept = own.load(result["experiment_id"])
    assert result["best_val"] == min(result["metric_list"])
    assert (result["num_trials"], kept.asked.placement.engine) == (4, "spark")
    assert [len(trial.curve) for trial in kept.trials] == [3, 3, 3, 3]
    assert spark_application.applicationId == driver
