"""Models of Keras as Estimators of pyspark.ml."""

from __future__ import annotations

from cargobike.compat.horovod.spark.keras.estimator import KerasEstimator, KerasModel

__all__ = ["KerasEstimator", "KerasModel"]
