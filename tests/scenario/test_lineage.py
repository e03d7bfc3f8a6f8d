"""From groups over views, training datasets and tables to experiments, and back: what users see of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from cargobike import data, experiment, features, project
from cargobike.cli.app import app
from cargobike.core.registering.tracing import Edge, Thing, lineage_of
from cargobike.errors import InvalidInputError
from cargobike.features import TrainingDataset


def _train(data: Any) -> float:
    return float(sum(len(batch["value"]) for batch in data))


def _dataset() -> TrainingDataset:
    teams = features.create_group("teams", key="team_id", event_time="at")
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0, 4.0]})
    view = features.create_view("team_value", features=["budget"], label="value")
    labels = {"team_id": [1, 2] * 5, "at": ["2026-02-01"] * 10, "value": [float(number) for number in range(10)]}
    return view.create_training_dataset("season", labels, split={"train": 0.8, "test": 0.2}, seed=1)


def _plain(edges: Iterable[Edge]) -> list[Edge]:
    """Return edges without their times, which differ each time."""
    return [edge._replace(at=0.0, goes_on=False) for edge in edges]


def _run(given: Any) -> str:
    return str(experiment.launch(_train, {}, data=given, num_trials=1, workers=0, quiet=True, name="a run").id)


def test_a_group_leads_to_experiments_and_an_experiment_back_to_groups() -> None:
    dataset = _dataset()
    first = _run(dataset)
    second = _run(data.Loader(dataset["test"], batch_size=1))
    again = experiment.reproduce(first, workers=1, quiet=True)
    assert again.is_same

    repeated = Thing("experiment", again.id)
    group, view, season = (
        Thing("group", "teams", "1"),
        Thing("view", "team_value", "1"),
        Thing("dataset", "season", "1"),
    )
    uses = features.lineage("teams").uses
    assert set(_plain(uses)) == {
        Edge(view, group, detail="budget"),
        Edge(season, view),
        Edge(season, group, detail="commit 0"),
        Edge(Thing("experiment", first), season, "trained on", "part train", "a run"),
        Edge(Thing("experiment", second), season, "trained on", "part test", "a run"),
        Edge(repeated, season, "trained on", "part train", "a run again"),
        Edge(repeated, Thing("experiment", first), "made from", "its trials once more", "a run again"),
    }
    back = features.lineage(second, kind="experiment")
    assert back.uses == []
    assert [edge.source for edge in back.sources] == [season, view, group, group]


def test_tables_lead_from_files_to_experiments(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("value\n1\n2\n3\n")
    data.write(str(path), "raw")
    data.write(data.open("raw"), "clean")
    table = data.write("clean:1", "clean")
    used = _run(table)
    memory = _run(pd.DataFrame({"value": [1.0, 2.0]}))

    here = project.current()
    found = lineage_of(here, "clean:2")
    assert found.uses == [Edge(Thing("experiment", used), Thing("table", "clean", "2"), "trained on", title="a run")]
    assert [str(edge.source) for edge in found.sources] == ["table clean:1", "table raw:1", f"file {path}"]
    (edge,) = lineage_of(here, memory).sources
    assert (edge.source.kind, edge.detail) == ("table", "a table in memory")
    assert data.open(edge.source.name).num_rows == 2, "the name is one that can be opened"


def test_groups_and_labels_lead_back_to_what_queries_name(tmp_path: Path) -> None:
    times = pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"], utc=True)
    data.write({"team_id": [1, 2, 1], "moment": times, "spent": [1.0, 2.0, 3.0], "value": [1.0, 2.0, 3.0]}, "raw")
    path = tmp_path / "homes.parquet"
    pd.DataFrame({"team_id": [1, 2], "moment": times[:2], "stadium": [1.5, 2.5]}).to_parquet(path)
    weeks = features.create_group("weeks", key="team_id", event_time="moment")
    query = """
        WITH days AS (SELECT team_id, moment, spent FROM raw)
        SELECT team_id, moment, sum(spent) OVER week AS spent_7d FROM days
        WINDOW week AS (PARTITION BY team_id ORDER BY moment RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW)"""
    weeks.insert(query)
    assert sorted(weeks.read()["spent_7d"].to_pylist()) == [1.0, 2.0, 4.0]
    homes = features.create_group("homes", key="team_id", event_time="moment")
    homes.insert(str(path))
    doubled = features.create_group("doubled", key="team_id", event_time="moment")
    doubled.insert(
        'SELECT w.team_id, w.moment, 2 * spent_7d AS twice FROM weeks w, "raw:1" r WHERE w.moment = r.moment'
    )
    said = features.create_group("said", key="team_id")
    said.insert({"team_id": [1], "size": [3.0]}, made_from=[data.open("raw"), ("file", "/far/away.csv"), weeks])
    view = features.create_view("team_value", features=["spent_7d", "stadium", "twice"], label="value")
    labels = "SELECT team_id, moment + INTERVAL 1 DAY AS moment, value FROM raw WHERE value < 3"
    dataset = view.create_training_dataset("season", labels)
    assert dataset["train"].num_rows == 2

    raw, made = Thing("table", "raw", "1"), Thing("group", "weeks", "1")
    edges = set(_plain(features.lineage("season").sources))
    assert Edge(made, raw, detail="commit 0") in edges
    assert Edge(Thing("group", "homes", "1"), Thing("file", str(path)), detail="commit 0") in edges
    assert {edge.source for edge in edges if edge.made.name == "doubled"} == {raw, made}
    assert Edge(Thing("dataset", "season", "1"), raw, detail="labels") in edges
    assert {edge.source for edge in features.lineage("said").sources} == {raw, made, Thing("file", "/far/away.csv")}
    data.write({"team_id": [9], "moment": times[:1], "spent": [1.0]}, "later")
    weeks.insert(query.replace("FROM raw", "FROM later"))
    assert set(_plain(features.lineage("season").sources)) == edges, "what came to a group later is not in it"
    assert "later" in {edge.source.name for edge in features.lineage("weeks").sources}
    assert "season" not in {edge.made.name for edge in lineage_of(project.current(), "later").uses}
    with pytest.raises(InvalidInputError, match=r"made_from has int \(7\); give tables"):
        said.insert({"team_id": [1], "size": [3.0]}, made_from=[7])  # type: ignore[list-item]
    features.remove_group("said")
    assert "said" not in {edge.made.name for edge in lineage_of(project.current(), "raw").uses}


def test_predictions_lead_back_to_what_they_were_made_for() -> None:
    dataset = _dataset()

    def predict(rows: Any) -> Any:
        return {"doubled": rows["value"] * 2}

    experiment.inference(predict, dataset["test"], output="doubled double", output_to="doubled", workers=0, quiet=True)
    (edge, *more) = lineage_of(project.current(), "doubled").sources
    assert edge._replace(at=0.0) == Edge(
        Thing("table", "doubled", "1"), Thing("dataset", "season", "1"), detail="part test"
    )
    assert len(more) == 3


def test_tables_elsewhere_are_called_by_their_address(tmp_path: Path) -> None:
    data.write({"value": [1.0]}, tmp_path / "far" / "points")
    used = _run(str(tmp_path / "far" / "points"))
    (edge,) = lineage_of(project.current(), used).sources
    assert edge.source == Thing("table", str(tmp_path / "far" / "points"), "1")
    assert lineage_of(project.current(), str(tmp_path / "far" / "points")).uses == [edge]


@pytest.mark.parametrize("kind", ["table", "dataset"])
def test_show_says_once_which_version_it_was(kind: str) -> None:
    used = _run(data.write({"value": [1.0]}, "points") if kind == "table" else _dataset())
    shown = CliRunner().invoke(app, ["show", used]).stdout
    expected = "table points:1, 1 row" if kind == "table" else "training dataset season:1/train, 8 rows"
    assert expected in shown
