"""`horovod.spark`: ranks on the executors of the active Spark session."""

from __future__ import annotations

from cargobike.compat.horovod.spark.runner import run, run_elastic

__all__ = ["run", "run_elastic"]
