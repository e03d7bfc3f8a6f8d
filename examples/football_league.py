"""A small football league: feature groups, training rows that are right in time, a search over them, look-ups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cargobike import experiment, features

TEAMS, SEASONS = 40, 10


def play_league() -> pd.DataFrame:
    """Fill two groups with a history of seasons, and return what teams were worth in the middle of each season."""
    random = np.random.default_rng(0)
    budget = random.uniform(10, 200, TEAMS)
    starts = pd.date_range("2015-07-01", periods=SEASONS, freq="365D", tz="UTC")
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    seasons = features.create_group("attendances", key="team_id", event_time="at", online=True)
    labels = []
    for start in starts:
        budget = budget * random.uniform(0.9, 1.2, TEAMS)
        attendance = 300 * budget * random.uniform(0.8, 1.2, TEAMS)
        ids = np.arange(TEAMS)
        teams.insert(pd.DataFrame({"team_id": ids, "at": start, "team_budget": budget}))
        ages = random.uniform(22, 30, TEAMS)
        rows = {"team_id": ids, "at": start, "average_attendance": attendance, "average_player_age": ages}
        seasons.insert(pd.DataFrame(rows))
        value = 3 * budget + 0.01 * attendance
        labels.append(pd.DataFrame({"team_id": ids, "at": start + pd.Timedelta(days=180), "value": value}))
    return pd.concat(labels, ignore_index=True)


def train(ridge: float, data: Any) -> float:
    """Fit a line with a penalty; return its error on the rows it learned from."""
    batches = [(batch["x"], batch["y"]) for batch in data]
    x, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    x = np.column_stack([x, np.ones(len(x))])
    weights = np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ y)
    return float(np.sqrt(np.mean((x @ weights - y) ** 2)))


def main() -> None:
    from cargobike import data

    labels = play_league()
    query = features.get_features(["average_attendance", "average_player_age"])
    print(query.head(3).to_pandas())
    view = features.create_view(
        "team_value",
        features=["team_budget", "average_attendance", "average_player_age"],
        label="value",
        transformations=dict.fromkeys(["team_budget", "average_attendance", "average_player_age"], "standardize"),
    )
    print(view.training_data(labels).explain())
    dataset = view.create_training_dataset("team_value", labels, split={"train": 0.8, "test": 0.2}, by="time")
    loader = data.Loader(dataset, batch_size=128, columns={"x": view.features, "y": "value"})
    space = {"ridge": ("DOUBLE", [0.0, 10.0])}
    result = experiment.launch(train, space, data=loader, num_trials=4, workers=1, direction="min")
    assert result.best is not None
    print(f"trained on {dataset.id}, {dataset['train'].num_rows} rows; error {result.best.metric:.3f}")
    print(f"team 3 now: {view.vector(team_id=3)}")
    view.close()


if __name__ == "__main__":
    main()
