"""Workers as tasks of an Apache Spark cluster."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cargobike.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]


def __getattr__(name: str) -> Any:
    # Lazily: an executor imports modules of this room without the engine.
    if name == "SparkEngine":
        return importlib.import_module("cargobike.engines.spark.engine").SparkEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
