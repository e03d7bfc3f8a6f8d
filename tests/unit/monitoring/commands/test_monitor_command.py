from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cargobike.cli.app import app
from cargobike.core.layout import ProjectFolder
from cargobike.monitoring.facts import AlarmRaised, MonitorStarted, Watched, WindowJudged
from cargobike.monitoring.record import folder_of
from cargobike.monitoring.running.keeping import Keeper, Kept


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    """Return a project with a monitor that has an open alarm."""
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    monkeypatch.chdir(tmp_path)
    project = ProjectFolder(tmp_path / "project")
    keeper = Keeper(folder_of(project, "digits"))
    common: dict[str, Any] = {"at": 2e9, "model_version": 1, "first_at": 2e9, "last_at": 2e9 + 5, "rows": 50}
    keeper.commit(
        Kept(),
        [
            MonitorStarted(at=2e9, id="digits", watched=Watched(subject="digits", reference="<b>visitors</b>")),
            WindowJudged(**common, number=1, unusual=True, probability=0.01, drift={"age": 0.01}),
            AlarmRaised(**common, id="alarm-1", kind="drift", window=1, windows=(1,), since=2e9, text="age moved"),
        ],
    )
    keeper.close()
    return project


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["monitor", *words])
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout


def test_monitors_are_listed_shown_and_acknowledged() -> None:
    assert "alarm-1" in run("ls")
    (listed,) = json.loads(run("ls", "--json"))
    assert (listed["name"], listed["state"], listed["open_alarms"]) == ("digits", "stopped", ["alarm-1"])
    assert "age moved" in run("show", "digits", code=3), "an alarm is open"
    assert json.loads(run("ack", "digits", "--note", "known", "--json")) == {"acknowledged": ["alarm-1"]}
    shown = json.loads(run("show", "digits", "--json"))
    assert shown["alarms"][0]["state"] == "acknowledged"
    assert shown["last_windows"][0]["drift"] == {"age": 0.01}
    assert "has no open alarm" in run("ack", "digits")
    assert "known" in run("show", "digits")


def test_a_report_is_one_file_in_which_nothing_is_code(tmp_path: Path) -> None:
    assert json.loads(run("report", "digits", "--json")) == {"report": "digits.html"}
    page = (tmp_path / "digits.html").read_text()
    assert "&lt;b&gt;visitors&lt;/b&gt;" in page
    assert "Features over time" in page


def test_labels_are_kept_by_number(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("request_id,label\na,1\n")
    assert json.loads(run("label", "digits", "labels.csv", "--json")) == {"labels": 1}
    assert "Labels 2 are kept" in run("label", "digits", "labels.csv")


def test_what_is_not_there_is_said_and_what_destroys_is_asked(project: ProjectFolder) -> None:
    result = CliRunner().invoke(app, ["monitor", "show", "digit"])
    assert result.exit_code == 1
    assert "no monitor 'digit'" in result.output
    assert "was not watched" in run("stop", "digits")
    run("rm", "digits", "--json", code=2)
    assert json.loads(run("rm", "digits", "--yes", "--json")) == {"removed": "digits"}
    assert not folder_of(project, "digits").root.exists()
    assert "There are no monitors" in run("ls")
