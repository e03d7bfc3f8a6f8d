"""`cargobike lineage`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cargobike import data, experiment
from cargobike.cli.app import app

FIRST = "shapes"


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["lineage", *words])
    assert result.exit_code == code, result.output
    return result


def _train(data: Any) -> float:
    return float(len(data))


@pytest.fixture
def experiment_id() -> str:
    data.write({"x": [1.0, 2.0]}, "points")
    table = data.write("points:1", "clean")
    result = experiment.launch(_train, {}, data=table, num_trials=1, workers=0, quiet=True, name=FIRST)
    return str(result.id)


def test_two_trees_are_printed(experiment_id: str) -> None:
    assert call("clean").stdout.splitlines() == [
        "table clean:1",
        "├── came from",
        "│   └── table points:1",
        "└── used by",
        f"    └── experiment {experiment_id} {FIRST} (trained on)",
    ]
    assert call("points:1", "--kind", "table").stdout.splitlines()[1:4] == [
        "├── came from: nothing that is recorded",
        "└── used by",
        "    └── table clean:1",
    ]


def test_programs_get_the_steps(experiment_id: str) -> None:
    found = json.loads(call("clean:1", "--json").stdout)
    clean = {"kind": "table", "name": "clean", "version": "1", "title": ""}
    assert found["things"] == [clean]
    made = {"kind": "experiment", "name": experiment_id, "version": "", "title": FIRST}
    assert found["used_by"] == [{"made": made, "from": clean, "relation": "trained on", "detail": ""}]
    assert [step["from"]["name"] for step in found["came_from"]] == ["points"]


@pytest.mark.parametrize("name", [FIRST, "last", "id"])
def test_experiments_are_found_by_what_people_call_them(experiment_id: str, name: str) -> None:
    first = call(experiment_id if name == "id" else name).stdout.splitlines()[0]
    assert first == f"experiment {experiment_id} {FIRST}"


def test_what_is_unknown_is_refused_with_the_nearest_name(experiment_id: str) -> None:
    assert "Did you mean 'points'?" in call("pionts", code=1).stderr
    assert "No view called 'points'" in call("points", "--kind", "view", code=1).stderr
