"""Functions of estimators, as a user would write them: least squares, and the nearest mean of a class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cargobike import trial


def train(data: Any, alpha: float = 0.001) -> float:
    rows = data.to_pandas()
    target = rows.pop("y").to_numpy(dtype=float)
    x = rows.to_numpy(dtype=float)
    middle, mean = x.mean(axis=0), target.mean()
    centred = x - middle
    weights = np.linalg.solve(centred.T @ centred + alpha * np.eye(x.shape[1]), centred.T @ (target - mean))
    trial.checkpoint.save({"weights": weights, "offset": mean - middle @ weights})
    return float(np.mean((x @ weights + mean - middle @ weights - target) ** 2))


def predict(model: dict[str, Any], batch: pd.DataFrame) -> Any:
    rows = batch.drop(columns=["y", "id"], errors="ignore").to_numpy(dtype=float)
    return rows @ model["weights"] + model["offset"]


def train_classes(data: Any) -> float:
    rows = data.to_pandas()
    target = rows.pop("y").to_numpy()
    x = rows.to_numpy(dtype=float)
    trial.checkpoint.save(np.stack([x[target == number].mean(axis=0) for number in range(target.max() + 1)]))
    return 0.0


def predict_classes(model: Any, batch: pd.DataFrame) -> Any:
    distances = ((batch.to_numpy(dtype=float)[:, None] - model) ** 2).sum(axis=2)
    closeness = np.exp(distances.min(axis=1, keepdims=True) - distances)
    return closeness / closeness.sum(axis=1, keepdims=True)


def train_file(data: Any) -> float:
    Path("model.txt").write_text(str(data.to_pandas()["y"].mean()))
    trial.checkpoint.save(Path("model.txt"))
    return 0.0


def predict_from_file(model: Path, batch: pd.DataFrame) -> Any:
    return np.full(len(batch), float(model.read_text()))


def train_nothing(data: Any) -> float:
    return float(len(data.to_pandas()))
