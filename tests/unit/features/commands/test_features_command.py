"""`cargobike features ls, show, search, stats, insert, delete, compact, vacuum`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cargobike import features
from cargobike.cli.app import app

CSV = "team_id,at,budget,city\n1,2026-01-01T00:00:00Z,10.5,Graz\n2,2026-01-02T00:00:00Z,11.5,\x1b[31mBern\n"


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["features", *words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def rows(tmp_path: Path) -> str:
    features.create_group("teams", key="team_id", event_time="at", description="Clubs", tags=["football"])
    (tmp_path / "rows.csv").write_text(CSV)
    return str(tmp_path / "rows.csv")


def test_a_group_is_filled_listed_shown_and_found(rows: str) -> None:
    assert "Commit 0 of teams: 2 rows inserted, 0 updated, 0 unchanged." in call("insert", "teams", rows).stdout
    again = json.loads(call("insert", "teams", rows, "--json", "-m", "once more").stdout)
    assert (again["number"], again["unchanged"], again["message"]) == (1, 2, "once more")
    assert [(one["name"], one["rows"], one["commit"]) for one in json.loads(call("ls", "--json").stdout)] == [
        ("teams", 2, 1)
    ]
    assert "teams:1" in call("ls").stdout
    shown = json.loads(call("show", "teams", "--json").stdout)
    assert [column["name"] for column in shown["columns"]] == ["team_id", "at", "budget", "city"]
    assert [commit["number"] for commit in shown["commits"]] == [1, 0]
    assert "once more" in call("show", "teams:1").stdout
    assert [one["found_in"] for one in json.loads(call("search", "BUDG", "--json").stdout)] == [["feature budget"]]
    assert "No feature group has 'nothing'" in call("search", "nothing").stdout


def test_statistics_are_printed(rows: str) -> None:
    call("insert", "teams", rows)
    out = call("stats", "teams").stdout
    assert "teams, commit 0: 2 rows" in out
    assert "\x1b" not in out
    figures = json.loads(call("stats", "teams", "--commit", "0", "--json").stdout)
    assert figures["columns"]["budget"]["mean"] == 11.0
    assert json.loads(call("stats", "teams", "--as-of", "0", "--json").stdout)["rows"] == 2
    call("stats", "teams", "--as-of", "0", "--commit", "0", code=2)


def test_rows_are_deleted_and_forgotten(rows: str) -> None:
    call("insert", "teams", rows)
    call("delete", "teams", "1", "--json", code=2)
    assert json.loads(call("delete", "teams", "1", "--yes", "--json").stdout)["deleted"] == 1
    assert json.loads(call("vacuum", "teams", "--older-than", "0", "-y", "--json").stdout)["deleted_files"] == 1
    assert "newest commit of teams is 2" in call("compact", "teams").stdout
    assert features.group("teams").read().column("team_id").to_pylist() == [2]


def test_what_is_wrong_is_said(rows: str) -> None:
    assert "There are no feature groups" not in call("ls").stdout
    for words, expected in (
        (("show", "tems"), "Did you mean 'teams'?"),
        (("show", "teams:x"), "write the name of a group, view or training dataset, or name:version"),
        (("insert", "teams", "nowhere.csv"), "There is no file at 'nowhere.csv'"),
        (("insert", "teams", rows, "--duplicates", "lst"), "duplicates must be 'refuse' or 'first' or 'last'"),
    ):
        result = CliRunner().invoke(app, ["features", *words])
        assert result.exit_code != 0
        assert expected in f"{result.output}{result.exception}"
