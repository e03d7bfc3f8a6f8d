"""What the tasks of the example run, where Cargobike is: plain functions, which know nothing of Airflow."""

from __future__ import annotations

from typing import Any

import numpy as np

FEATURES = ["rooms", "area"]


def make_data(houses: int = 200, seed: int = 1) -> Any:
    """Write a table of houses, and return its name."""
    from cargobike import data  # noqa: PLC0415 - each of these loads only what it needs

    random = np.random.default_rng(seed)
    rooms = random.integers(1, 8, houses)
    area = 20.0 * rooms + random.uniform(0, 20, houses)
    price = 3.0 * area + 10.0 * rooms + random.normal(0, 5, houses)
    return data.write({"house": np.arange(houses), "rooms": rooms, "area": area, "price": price}, "houses")


def make_features(table: dict[str, Any], at: str) -> Any:
    """Put what is known of the houses into a feature group, and freeze a training dataset of it."""
    import pandas as pd  # noqa: PLC0415

    from cargobike import data, features  # noqa: PLC0415

    houses = data.open(table["name"]).to_pandas()
    houses["at"] = pd.Timestamp(at)
    group = features.create_group("houses", key="house", event_time="at")
    group.insert(houses[["house", "at", *FEATURES]])
    view = features.create_view("house_prices", features=FEATURES, label="price")
    labels = houses[["house", "at", "price"]].assign(at=houses["at"] + pd.Timedelta(seconds=1))
    return {"group": group, "dataset": view.create_training_dataset("house_prices", labels)}


def train(ridge: float, data: Any) -> dict[str, float]:
    """Fit a line, keep it as a model, and return its error."""
    from cargobike import trial  # noqa: PLC0415

    batches = list(data)
    x = np.column_stack([np.concatenate([batch[name] for batch in batches]) for name in FEATURES]).astype(float)
    y = np.concatenate([batch["price"] for batch in batches])
    weights = np.linalg.solve(x.T @ x + ridge * np.eye(len(FEATURES)), x.T @ y)
    error = float(np.sqrt(np.mean((x @ weights - y) ** 2)))

    def predict(rows: list[dict[str, float]]) -> list[float]:
        return [float(sum(row[name] * weight for name, weight in zip(FEATURES, weights, strict=True))) for row in rows]

    trial.model.save("house_prices", predict, example=[{"rooms": 3, "area": 70.0}], metrics={"error": error})
    return {"error": error}
