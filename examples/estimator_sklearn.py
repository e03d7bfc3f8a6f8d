"""A train function as an estimator of scikit-learn: cross-validated, searched, and kept with all its runs.

python examples/estimator_sklearn.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cargobike import trial
from cargobike.sklearn import Estimator


def train(data: Any, alpha: float = 1.0) -> float:
    """Fit ridge regression, save the model, and return the error."""
    rows = data.to_pandas()
    target = rows.pop("y").to_numpy()
    x = np.column_stack([rows.to_numpy(), np.ones(len(rows))])
    weights = np.linalg.solve(x.T @ x + alpha * np.eye(x.shape[1]), x.T @ target)
    trial.checkpoint.save(weights)
    return float(np.mean((x @ weights - target) ** 2))


def predict(model: Any, batch: pd.DataFrame) -> Any:
    """Return a value for each row, with what train saved."""
    return np.column_stack([batch.to_numpy(), np.ones(len(batch))]) @ model


if __name__ == "__main__":
    x, y = load_diabetes(return_X_y=True)
    estimator = make_pipeline(StandardScaler(), Estimator(train, predict, workers=0))
    print("R² of five folds:", cross_val_score(estimator, x, y, cv=5).round(2).tolist())
    search = GridSearchCV(estimator, {"estimator__alpha": [0.1, 10.0, 1000.0]}, cv=3).fit(x, y)
    print("best:", search.best_params_)
