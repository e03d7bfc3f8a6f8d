"""A model that is trained on a kept dataset, served, watched, rolled, retrained and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cargobike import data, models, monitoring, serving
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.tracing import Thing, lineage_of
from cargobike.store.files import project as projects


class OverAge:
    """Tells whether a visitor is older than some age."""

    def __init__(self, age: float) -> None:
        self.age = age

    def __call__(self, rows: list[Any]) -> list[Any]:
        return [int(row["age"] > self.age) for row in rows]


def visitors(rows: int, seed: int, moved: float = 0.0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    ages, towns = random.normal(40 + moved, 10, rows), random.choice(["Oslo", "Rome"], rows)
    return [{"age": float(age), "town": str(town)} for age, town in zip(ages, towns, strict=True)]


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Any:
    projects.use(tmp_path / "project")
    yield tmp_path / "project"
    projects.use(None)


def test_a_served_model_is_watched_against_what_it_was_trained_on(project: Path) -> None:
    table = data.write(pd.DataFrame(visitors(2000, 0)), "visitors")
    example = visitors(3, 1)
    models.register("over", OverAge(40.0), example=example, made_from=[Thing("table", "visitors", str(table.version))])
    models.register("over", OverAge(55.0), example=example)
    with serving.deploy("shop", "over:1", log={"flush_s": 0.1}) as deployment:
        monitor = monitoring.watch("shop", window=100, alarm="2 of 2")
        watched = monitor.status().watched
        assert watched.reference == "table visitors:1"
        assert set(watched.columns) == {"age", "town", "output.output"}, "what it predicts is watched too"
        edges = lineage_of(projects.current(), "shop", "monitor").sources
        assert {str(edge.source) for edge in edges} >= {"table visitors:1", "deployment shop"}
        for seed in range(2):
            deployment.predict(visitors(100, 10 + seed))
        monitor.wait(60, windows=2, alarms=0)
        deployment.predict(visitors(40, 20))
        deployment.roll("over:2")
        for seed in range(2):
            deployment.predict(visitors(100, 30 + seed))
        record = monitor.wait(60, windows=5, alarms=1)
        monitor.stop()
        assert [(window.model_version, window.rows) for window in record.windows] == [
            (1, 100),
            (1, 100),
            (2, 100),
            (2, 100),
            (1, 40),
        ], "a window never mixes versions; what is left of the old one is closed by itself"
        assert [moved.feature for moved in record.alarms[0].raised.moved][:1] == ["output.output"]
        assert not any(moved.feature == "age" for moved in record.alarms[0].raised.moved)
        _compare()


def _compare() -> None:
    """Compare the versions where labels have come: visitors over 55 were what was wanted."""
    rows = serving.read_log("shop")
    with pytest.raises(InvalidInputError, match=r"shop has 0 labelled rows .* at least 10 are needed"):
        monitoring.compare("shop", "over:1", "over:2")
    truth = [int(age > 55) for age in rows["input.age"].to_pylist()]
    places = {"request_id": rows["request_id"].to_pylist(), "row": rows["row"].to_pylist()}
    monitoring.labels("shop", pd.DataFrame({**places, "label": truth}))
    result = monitoring.compare("shop", champion="over:1", challenger="over:2", rows=100)
    assert (result.champion, result.challenger, result.metric, result.rows) == ("over:1", "over:2", "error", 100)
    assert result.challenger_error == 0
    assert result.champion_error > 0.3
    assert result.better
    assert result.high < 0
    other = monitoring.compare("shop", champion="over:2", challenger="over:1", rows=100)
    assert not other.better
    same = monitoring.compare("shop", champion="over:1", challenger="over:1", rows=100)
    assert (same.low, same.high, same.better) == (0.0, 0.0, False)
    assert monitoring.monitor("shop").record().compared == [result, other, same]
