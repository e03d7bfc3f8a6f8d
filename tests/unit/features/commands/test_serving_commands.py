"""`cargobike features vector, verify, materialize, views, datasets, show, lineage`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cargobike import features, project
from cargobike.cli.app import app
from cargobike.core.errors import NotFoundError
from cargobike.features.online.stores.choosing import store_of
from cargobike.store.files.storages import storage_of


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["features", *words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(autouse=True)
def _league() -> None:
    teams = features.create_group("teams", key="team_id", event_time="at")
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01", "2026-01-01"], "budget": [10.0, None]})
    view = features.create_view("team_value", features=["budget"], label="value")
    view.create_training_dataset("team_value", {"team_id": [1, 2], "at": ["2026-02-01"] * 2, "value": [1.0, 2.0]})


def answer(*words: str, code: int = 0) -> Any:
    return json.loads(call(*words, "--json", code=code).stdout)


def test_features_are_materialized_looked_up_and_verified() -> None:
    assert "No group was materialized" in call("verify").stdout
    assert answer("materialize", "teams") == {"commit": 0, "rows": 2, "removed": 0, "whole": True}
    assert "0 rows written" in call("materialize", "teams").stdout
    assert answer("vector", "team_value", "team_id=1") == {"values": {"budget": 10.0}, "states": {"budget": "present"}}
    assert "null" in call("vector", "team_value:1", "team_id=2").stdout
    assert answer("vector", "team_value", "team_id=3")["states"] == {"budget": "missing"}
    assert "2 keys compared, equal" in call("verify").stdout

    definition = features.group("teams").definition
    with store_of(definition, storage_of(project.current())).writing(("int64",)) as writer:
        state = writer.state()
        assert state is not None
        writer.remove([1])
        writer.finish(state)
    found = answer("verify", "teams", code=1)
    assert [(one["group"], one["missing"], one["equal"]) for one in found] == [("teams", 1, False)]
    assert "1 is not found" in call("verify", "--sample", "2", code=1).stdout


def test_views_and_datasets_are_listed() -> None:
    assert answer("views")[0]["features"] == ["budget"]
    assert "team_value:1" in call("views").stdout
    assert answer("datasets")[0]["parts"] == {"train": 2}
    assert "teams@0" in call("datasets").stdout


def test_views_and_datasets_are_shown() -> None:
    assert "team_value:1: a view, learns value" in call("show", "team_value").stdout
    view = answer("show", "team_value:1", "--kind", "view")
    assert [(one["name"], one["type"], one["group"]) for one in view["columns"]] == [("budget", "double", "teams")]
    dataset = answer("show", "team_value", "--kind", "dataset")
    assert (dataset["id"], dataset["rows"], dataset["commits"]) == (
        "team_value:1",
        2,
        [{"group": "teams", "version": 1, "commit": 0}],
    )
    shown = call("show", "team_value:1", "--kind", "dataset").stdout
    assert "made of teams:1 at commit 0" in shown
    assert dataset["fingerprint"] in shown
    assert answer("show", "teams")["key"] == ["team_id"]
    assert "Did you mean 'team_value'?" in call("show", "team_valu", code=1).stderr
    assert "has no version 2" in call("show", "team_value:2", "--kind", "dataset", code=1).stderr


def test_lineage_leads_in_both_directions() -> None:
    found = answer("lineage", "teams")
    assert found["made_from"] == []
    assert {(edge["made"], edge["from"]) for edge in found["used_by"]} == {
        ("view team_value:1", "group teams:1"),
        ("dataset team_value:1", "view team_value:1"),
        ("dataset team_value:1", "group teams:1"),
    }
    dataset = features.lineage("team_value:1")
    assert {str(edge.source) for edge in dataset.sources} == {"view team_value:1", "group teams:1"}
    assert "commit 0" in call("lineage", "team_value").stdout
    with pytest.raises(NotFoundError, match="Nothing called 'temas'"):
        features.lineage("temas")
