"""From raw data to a model that is served and watched, as one function whose calls are the steps of a pipeline.

    python examples/retrain.py

Kill it at any moment, and `cargobike pipelines resume` goes on where it was: no table is written twice, no search is
begun again, no second version of the model is registered. `cargobike ui` shows the run, its graph and what each step
made; `cargobike lineage team_value` the way from the model back to the data.
"""

from __future__ import annotations

from typing import Any

from cargobike import data, experiment, features, models, monitoring, pipelines, serving, trial

TEAMS = 400


def collect(teams: int, seed: int) -> dict[str, list[Any]]:
    """Pretend to ask other systems: budgets of teams, how many people came, and what a team was sold for."""
    import numpy as np

    random = np.random.default_rng(seed)
    budget, attendance = random.gamma(4.0, 10.0, teams), random.normal(20.0, 6.0, teams)
    value = 3.0 * budget + 5.0 * attendance + random.normal(0.0, 4.0, teams)
    return {
        "team_id": list(range(teams)),
        "at": ["2026-01-01"] * teams,
        "budget": budget.tolist(),
        "attendance": attendance.tolist(),
        "value": value.tolist(),
    }


class Ridge:
    """A small model of our own."""

    def __init__(self, weights: list[float]) -> None:
        self.weights = weights

    def predict(self, rows: list[dict[str, float]]) -> list[float]:
        first, second, bias = self.weights
        return [first * row["budget"] + second * row["attendance"] + bias for row in rows]


def train(penalty: float, data: data.Loader) -> dict[str, float]:
    """Fit on the rows of the training part, keep the model, and return its error on the test part."""
    import numpy as np

    def inputs(rows: Any) -> Any:
        return np.column_stack([rows["budget"], rows["attendance"], np.ones(len(rows["value"]))])

    batches = list(data)
    x, y = np.concatenate([inputs(rows) for rows in batches]), np.concatenate([rows["value"] for rows in batches])
    weights = np.linalg.solve(x.T @ x + penalty * np.eye(3), x.T @ y)
    test = features.training_dataset("team_value")["test"].to_pandas()
    rmse = float(np.sqrt(np.mean((inputs(test) @ weights - test["value"]) ** 2)))
    model = Ridge(weights.tolist())
    trial.model.save("team_value", model, example=[{"budget": 40.0, "attendance": 20.0}], metrics={"rmse": rmse})
    return {"rmse": rmse}


def is_served(name: str) -> bool:
    """Tell whether there is a deployment: a step, so that a run that is resumed decides as it did before."""
    return any(one.name == name for one in serving.list_deployments())


def retrain(seed: int = 1) -> str:
    """The pipeline: a plain function. What it calls below is recorded, and not done twice."""
    rows = pipelines.step(collect)(TEAMS, seed).result()  # a function of ours: a process of its own
    data.write(rows, "raw_teams")

    known = {name: rows[name] for name in ("team_id", "at", "budget", "attendance")}
    teams = features.create_group("teams", key="team_id", event_time="at")
    teams.insert(known)
    view = features.create_view("team_value", features=["budget", "attendance"], label="value")
    labels = {name: rows[name] for name in ("team_id", "at", "value")}
    dataset = view.create_training_dataset("team_value", labels, split={"train": 0.8, "test": 0.2}, seed=7)

    space = {"penalty": [0.01, 1.0, 100.0, 10_000.0]}
    result = experiment.launch(train, space, direction="min", metric="rmse", data=dataset, workers=2, quiet=True)
    assert result.best is not None
    model = result.best.register("team_value")
    model.promote("champion", when="rmse <= champion.rmse * 1.1")

    if pipelines.step(is_served)("team_value").result():
        serving.deployment("team_value").roll("team_value@champion")
    else:
        serving.deploy("team_value", "team_value@champion")
        monitoring.watch("team_value", dataset, window=100)
    return f"{model.name}:{model.version}"


if __name__ == "__main__":
    run = pipelines.run(retrain)
    print(f"run {run.id}: {run.state}, {len(run.steps)} steps")
    print(f"{run.result} has an error of {models.get(run.result).metrics['rmse']:.2f}")
    deployment = serving.deployment("team_value")
    print(f"a team with a budget of 40: {deployment.predict({'budget': 40.0, 'attendance': 20.0}):.0f}")
    monitoring.monitor("team_value").stop()
    deployment.stop()
