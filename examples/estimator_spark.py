"""A train function as an estimator of pyspark.ml: fitted in a pipeline, saved, loaded, and used to predict.

python examples/estimator_spark.py
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pandas as pd
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession

from cargobike import trial
from cargobike.spark import Estimator, trusting


def train(data: Any, alpha: float = 0.001) -> float:
    """Fit least squares on the rows that this worker gets, and save the model."""
    rows = data.to_pandas()
    x, y = np.stack(rows["features"].to_list()), rows["price"].to_numpy()
    weights = np.linalg.solve(x.T @ x + alpha * np.eye(x.shape[1]), x.T @ y)
    trial.checkpoint.save(weights)
    return float(np.mean((x @ weights - y) ** 2))


def predict(model: Any, batch: pd.DataFrame) -> Any:
    """Return a price for each row."""
    return np.stack(batch["features"].to_list()) @ model


if __name__ == "__main__":
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    homes = session.range(1000).selectExpr("cast(id % 90 + 10 as double) as size", "cast(id % 5 as double) as rooms")
    homes = homes.selectExpr("*", "2 * size + 5 * rooms as price")
    pipeline = Pipeline(
        stages=[
            VectorAssembler(inputCols=["size", "rooms"], outputCol="features"),
            Estimator(train, predict, columns=["features", "price"], output="double", engine="local"),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        pipeline.fit(homes).write().overwrite().save(f"{folder}/model")
        with trusting():  # we wrote it ourselves
            model = PipelineModel.load(f"{folder}/model")
        errors = model.transform(homes).selectExpr("max(abs(prediction - price)) as worst").first()
    print(f"worst error: {errors['worst']:.4f}")
    session.stop()
