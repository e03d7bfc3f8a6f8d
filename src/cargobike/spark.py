"""Train functions as estimators of pyspark.ml: `fit(df)` returns a model whose `transform(df)` predicts."""

from __future__ import annotations

from cargobike.estimators.saved_state import trusting
from cargobike.estimators.spark_ml import Estimator, Model

__all__ = ["Estimator", "Model", "trusting"]
