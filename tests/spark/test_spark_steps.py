"""A step of a pipeline that asks for Spark runs there, and its result comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cargobike import pipelines

if TYPE_CHECKING:
    from cargobike.testing.spark_cluster import SparkCluster

pytestmark = pytest.mark.timeout(300)


def test_a_step_runs_on_a_cluster_and_its_neighbours_here(spark_cluster: SparkCluster) -> None:
    def scaled(values: list[int], by: int) -> Any:
        import os

        return {"values": [by * value for value in values], "spark": os.environ.get("SPARK_ENV_LOADED", "")}

    here, there = pipelines.step(scaled, name="here"), pipelines.step(scaled, name="there", engine=spark_cluster.master)

    def pipeline() -> Any:
        first = here([1, 2], 10)
        return first, there(first["values"], 2)

    first, second = pipelines.run(pipeline).result

    assert first == {"values": [10, 20], "spark": ""}
    assert second == {"values": [20, 40], "spark": "1"}
