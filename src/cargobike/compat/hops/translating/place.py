"""Where a call of hops runs: on the Spark session that it was given, on the one that is there, or on this machine."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from cargobike import devices
from cargobike.compat.placing import placement
from cargobike.core.errors import InvalidInputError
from cargobike.engines import SparkEngine
from cargobike.engines.engine import Engine

_EXECUTORS = ("spark.dynamicAllocation.maxExecutors", "spark.executor.instances")
_SERVERS = "spark.tensorflow.num.ps"
_NO_LIMIT = 2**31 - 1
"""What Spark says where the number of executors has no limit."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where train functions run.

    Attributes:
        given: The Spark session or context that a call was given, `None` if it was not.
    """

    given: Any = None

    @property
    def engine(self) -> str | Engine:
        """What our own calls take as `engine`."""
        if self.given is not None:
            return SparkEngine(self.given)
        engine: str = placement({}).get("engine", "local")
        return engine

    @property
    def workers(self) -> int | None:
        """What our own calls take as `workers`, where something says it."""
        workers: int | None = placement({}).get("workers")
        return workers

    @property
    def executors(self) -> int:
        """How many workers there are: as set, as Spark was configured, or one per GPU or core."""
        if self.workers:
            return self.workers
        context = self._context
        if context is not None:
            return _executors_of(context)
        return devices.get_num_gpus() or devices.get_num_cpus()

    @property
    def servers(self) -> int:
        """How many of the workers are parameter servers."""
        context = self._context
        text = os.environ.get("NUM_TF_PS") or (None if context is None else context.getConf().get(_SERVERS))
        try:
            return max(0, int(text or 0))
        except ValueError:
            raise InvalidInputError(f"NUM_TF_PS={text!r}; give a whole number of parameter servers.") from None

    @property
    def _context(self) -> Any:
        if self.given is not None:
            return getattr(self.given, "sparkContext", self.given)
        module = sys.modules.get("pyspark")
        return None if module is None else module.SparkContext._active_spark_context


def is_spark(thing: object) -> bool:
    """Tell whether something is a session or context of Spark's, without importing pyspark."""
    return type(thing).__module__.partition(".")[0] == "pyspark" and not callable(thing)


def _executors_of(context: Any) -> int:
    conf = context.getConf()
    for name in _EXECUTORS:
        text = conf.get(name)
        if text and text.isdigit() and 0 < int(text) < _NO_LIMIT:
            return int(text)
    return int(context.defaultParallelism)
