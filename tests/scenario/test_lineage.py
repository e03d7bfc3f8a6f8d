"""From groups over views, training datasets and tables to experiments, and back: what users see of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from cargobike import data, experiment, features, project
from cargobike.cli.app import app
from cargobike.core.registering.tracing import Edge, Thing, lineage_of
from cargobike.features import TrainingDataset


def _train(data: Any) -> float:
    return float(sum(len(batch["value"]) for batch in data))


def _dataset() -> TrainingDataset:
    teams = features.create_group("teams", key="team_id", event_time="at")
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0, 4.0]})
    view = features.create_view("team_value", features=["budget"], label="value")
    labels = {"team_id": [1, 2] * 5, "at": ["2026-02-01"] * 10, "value": [float(number) for number in range(10)]}
    return view.create_training_dataset("season", labels, split={"train": 0.8, "test": 0.2}, seed=1)


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
    assert set(uses) == {
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


def test_predictions_lead_back_to_what_they_were_made_for() -> None:
    dataset = _dataset()

    def predict(rows: Any) -> Any:
        return {"doubled": rows["value"] * 2}

    experiment.inference(predict, dataset["test"], output="doubled double", output_to="doubled", workers=0, quiet=True)
    (edge, *more) = lineage_of(project.current(), "doubled").sources
    assert edge == Edge(Thing("table", "doubled", "1"), Thing("dataset", "season", "1"), detail="part test")
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
