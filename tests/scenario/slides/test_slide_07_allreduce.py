"""Slide 7: `experiment.allreduce(distributed_training)`, with the strategy that TensorFlow 2 has in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cargobike.compat.hops import experiment
from cargobike.core import settings
from support.slide_functions import distributed_training, mirrored_training

if TYPE_CHECKING:
    from pyspark import SparkContext


@pytest.mark.parametrize(("workers", "loss"), [(1, 0.0), (3, 1.0)])
def test_one_function_on_all_workers(workers: int, loss: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, str(workers))
    _, outputs = experiment.allreduce(distributed_training)
    assert (outputs["loss"], outputs["workers"], outputs["role"]) == (loss, workers, "chief")


def test_with_tensorflow_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    _, outputs = experiment.allreduce(mirrored_training)
    assert outputs["replicas"] == 2
    assert outputs["loss"] < 0.01


def test_on_spark(monkeypatch: pytest.MonkeyPatch, spark_application: SparkContext) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    returned = experiment.allreduce(spark_application, distributed_training)
    assert returned.result.asked.placement.engine == "spark"
    assert returned[1]["loss"] == 0.5
