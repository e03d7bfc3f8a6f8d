"""A project that has something of everything, with a deployment that serves: for walks over all pages."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cargobike import Searchspace, data, experiment, features, models, pipelines, serving, sharing, trial
from cargobike import project as project_door
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Thing
from support.watched_monitors import make_monitor

PIPELINE = """
from cargobike import models, pipelines


@pipelines.step
def load(rows):
    print("reads", rows, "rows")
    return list(range(rows))


@pipelines.step
def clean(rows):
    return [row for row in rows if row % 2]


@pipelines.step
def learn(rows, rate):
    if rate > 1:
        raise ValueError(f"a rate of {rate} does not converge")
    return sum(rows) * rate


def retrain(rows=1000, rate=0.1):
    loaded = load(rows)
    return learn(clean(loaded), rate).result()
"""


def train(lr: float, act: str) -> dict[str, float]:
    """Report a curve and return its end."""
    print("learns with", act)
    for step in range(8):
        trial.report(accuracy=0.6 + 0.3 * lr * (1 - math.exp(-step)), loss=math.exp(-step * lr), step=step)
    if lr > 0.95:
        raise ValueError(f"{lr:.2f} is too much for {act}")
    return {"accuracy": 0.6 + 0.3 * lr - (0.05 if act == "gelu" else 0.0), "loss": 1 - lr}


def _twice(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


def _fill(root: Path, script: Path) -> None:
    """Fill a project, all of it through the front doors."""
    rng = random.Random(4)
    days = [f"2026-0{1 + number // 28}-{1 + number % 28:02}" for number in range(56)]
    accounts = [number % 7 for number in range(56)]
    data.write({"account": accounts, "at": days, "amount": [rng.random() for _ in days]}, "payments")
    data.write({"account": accounts, "at": days, "amount": [rng.random() for _ in days]}, "payments")
    spending = features.create_group(
        "spending", key="account", event_time="at", description="What accounts spend", tags=["money"], online=True
    )
    spending.insert({"account": accounts, "at": days, "spent": [10 * rng.random() for _ in days]})
    spending.insert({"account": [1, 2], "at": ["2026-03-01"] * 2, "spent": [7.5, 2.5]})
    view = features.create_view("spending_view", features=["spent"], label="is_fraud", description="For the detector")
    labels = {"account": accounts, "at": ["2026-04-01"] * 56, "is_fraud": [number % 2 for number in range(56)]}
    dataset = view.create_training_dataset("season", labels)
    space = Searchspace(lr=("DOUBLE", [0.0, 1.0]), act=["relu", "gelu"])
    for name, number in (("first look", 6), ("wider", 14)):
        experiment.launch(train, space, metric="accuracy", num_trials=number, workers=2, seed=4, name=name, quiet=True)
    for accuracy in (0.81, 0.84, 0.88):
        version = models.register(
            "detector",
            _twice,
            metrics={"accuracy": accuracy, "latency_ms": 3.5},
            example=[1.0],
            description="Finds fraud in payments",
            tags=["fraud"],
            made_from=[Thing("dataset", dataset.name, str(dataset.version))],
        )
    version.promote("champion")
    version.note("Checked by hand on the payments of March.")
    make_monitor(ProjectFolder(root), "people")
    script.write_text(PIPELINE)
    pipelines.run(f"{script}:retrain", run_id="nightly-1")
    try:
        pipelines.run(f"{script}:retrain", rate=3.0, run_id="nightly-2")
    except Exception as error:
        assert "does not converge" in str(error)  # noqa: PT017
    pipelines.schedule(f"{script}:retrain", cron="0 3 * * *", name="nightly")
    sharing.publish(
        "payments", "table:payments", network="lab", description="Made-up payments", license="CC0", tags=["money"],
        yes=True,
    )  # fmt: skip


@contextmanager
def everything(folder: Path) -> Iterator[ProjectFolder]:
    """Make a project with something of everything while entered; its deployment serves."""
    root = folder / "project"
    project_door.use(root)
    try:
        _fill(root, folder / "retrain.py")
        with serving.deploy("detector", "detector@champion") as deployment:
            for number in range(40):
                deployment.predict([float(number)])
            yield ProjectFolder(root)
    finally:
        project_door.use(None)
