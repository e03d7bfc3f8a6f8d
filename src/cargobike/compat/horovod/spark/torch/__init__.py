"""Networks of torch as Estimators of pyspark.ml."""

from __future__ import annotations

from cargobike.compat.horovod.spark.torch.estimator import TorchEstimator, TorchModel

__all__ = ["TorchEstimator", "TorchModel"]
