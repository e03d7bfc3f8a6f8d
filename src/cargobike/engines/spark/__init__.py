"""Workers as tasks of an Apache Spark cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]


if not TYPE_CHECKING:  # lazily: an executor imports modules of this room without the engine
    __getattr__ = lazy_names(__name__, {"SparkEngine": "cargobike.engines.spark.engine"})
