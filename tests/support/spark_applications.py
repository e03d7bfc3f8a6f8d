"""Fixtures: one Spark cluster for all tests, and applications on it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support import left_running

if TYPE_CHECKING:
    from pyspark import SparkContext

    from cargobike.engines.spark.session import OwnContext
    from cargobike.testing.spark_cluster import SparkCluster

SPARK_GPUS = ("left", "right")


@pytest.fixture(scope="session")
def spark_cluster(_no_test_writes_beside_the_code: None) -> Iterator[SparkCluster]:
    """A master and two workers, with four cores and two made-up GPUs each: one for all tests, as it takes time."""
    from cargobike.testing.spark_cluster import SparkCluster

    with SparkCluster(cores=4, gpus=SPARK_GPUS) as cluster:
        yield cluster


class SparkApplications:
    """Gives tests an application on the cluster: the same one, as long as they ask for the same settings."""

    def __init__(self, cluster: SparkCluster) -> None:
        self.cluster = cluster
        self._now: OwnContext | None = None
        self._settings: dict[str, str] = {}

    def context(self, **settings: str) -> SparkContext:
        """Return a context with these settings, dots as double underscores; by default an executor on each worker."""
        from cargobike.engines.spark.session import OwnContext

        chosen = self.cluster.settings(
            **{
                "spark__executor__cores": "2",
                "spark__executor__resource__gpu__amount": "2",
                "spark__task__resource__gpu__amount": "0.5",
                **settings,
            }
        )
        if self._now is None or chosen != self._settings or self._now.context._jsc is None:
            self.close()
            self._now, self._settings = OwnContext(self.cluster.master, chosen), chosen
            if self._now.java_pid is not None:
                left_running.shared.add(self._now.java_pid)
            self._await_executors(int(chosen.get("spark.cores.max", "4")), chosen)
        return self._now.context

    def _await_executors(self, cores: int, settings: dict[str, str]) -> None:
        """Wait until the executors are there, except those that come when they are needed."""
        if settings.get("spark.dynamicAllocation.enabled") == "true" or self._now is None:
            return
        deadline = time.monotonic() + 60.0
        while self._now.context.defaultParallelism < cores:
            assert time.monotonic() < deadline, f"the executors did not come\n{self.cluster.words()}"
            time.sleep(0.05)

    def close(self) -> None:
        """Stop the application that runs."""
        if self._now is not None:
            self._now.stop()
            self._now = None


@pytest.fixture(scope="session")
def spark_applications(spark_cluster: SparkCluster) -> Iterator[SparkApplications]:
    """Applications on the cluster, one at a time."""
    applications = SparkApplications(spark_cluster)
    yield applications
    applications.close()


@pytest.fixture
def spark_application(spark_applications: SparkApplications) -> SparkContext:
    """The application for tests that leave it as it was."""
    return spark_applications.context()


@pytest.fixture(autouse=True)
def _without_applications_of_other_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the shared application from tests that do not ask for it: programs that see one run on it."""
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and "spark_cluster" not in request.fixturenames:
        for what_stays in ("_active_spark_context", "_gateway", "_jvm"):  # threads look for the first by the second
            monkeypatch.setattr(pyspark.SparkContext, what_stays, None)
