"""The Spark engine keeps the promises of all engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cargobike.engines.engine import Engine
from cargobike.engines.spark.engine import SparkEngine
from cargobike.testing.engines import ProcessEngineContract

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications


pytestmark = pytest.mark.timeout(300)


class TestSparkEngine(ProcessEngineContract):
    made_by = "cargobike.engines.spark.engine:SparkEngine"

    @pytest.fixture(autouse=True)
    def _one_executor(self, spark_applications: SparkApplications, monkeypatch: pytest.MonkeyPatch) -> None:
        """One executor with two devices; its Python is there before the test, and keeps no process for later."""
        self._context = spark_applications.context(
            spark__cores__max="4",
            spark__executor__cores="4",
            spark__python__worker__reuse="false",
        )
        self._context.parallelize([0], 1).count()
        monkeypatch.setenv("MASTER", "local[2]")

    def make_engine(self, gpus: tuple[str, ...]) -> Engine:
        return SparkEngine(self._context)
