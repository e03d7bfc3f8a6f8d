"""`cargobike pipelines schedule`, `schedules` and `cargobike scheduler`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cargobike.cli import main


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    (tmp_path / "flows.py").write_text("def retrain(lr=0.1):\n    return lr\n")


class Said:
    """What a command printed, and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        capsys.readouterr()
        self.code = 0
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.argv", ["cargobike", *words])
                main()
        except SystemExit as end:
            self.code = int(end.code or 0)
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def test_a_schedule_from_its_making_to_its_end(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = Said(
        capsys,
        *("pipelines", "schedule", "flows.py:retrain", "--cron", "0 3 * * *", "--timezone", "Europe/Oslo"),
        *("--set", "lr=0.5", "--when", "arrived:in/*.csv", "--overlap", "queue", "--name", "nightly"),
    )
    assert made.code == 0, made.err
    assert "nightly is scheduled: 0 3 * * * (Europe/Oslo) or when " in made.out
    assert "`cargobike scheduler` runs it" in made.out
    shown = Said(capsys, "pipelines", "schedules", "show", "nightly", "--json").json
    assert shown["arguments"] == {"lr": 0.5}
    assert shown["when"] == [{"kind": "arrived", "subject": f"{tmp_path}/in/*.csv", "options": {}}]
    assert shown["next"]["local"][11:] in {"03:00:00+01:00", "03:00:00+02:00"}
    assert shown["next"]["utc"].endswith("+00:00")
    assert Said(capsys, "pipelines", "schedules", "pause", "nightly").out == "nightly is paused.\n"
    listed = Said(capsys, "pipelines", "schedules")
    assert "nightly" in listed.out
    assert "paused" in listed.out
    assert "Next: " in Said(capsys, "pipelines", "schedules", "resume", "nightly").out
    text = Said(capsys, "pipelines", "schedules", "show", "nightly").out
    assert f"runs {tmp_path}/flows.py:retrain with lr=0.5" in text
    assert Said(capsys, "pipelines", "schedules", "rm", "nightly", "--yes").out == "nightly is gone.\n"
    assert Said(capsys, "pipelines", "schedules", "--json").json == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--every", "0s"], "every must be between one second and ten years"),
        (["--when", "teams"], "'teams' is not KIND:WHAT, such as changed:teams"),
        (["--when", "sunny:oslo"], "'sunny' is no kind of trigger"),
        ([], "nothing sets it off"),
    ],
)
def test_mistakes_are_said(capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    said = Said(capsys, "pipelines", "schedule", "flows.py:retrain", *options)
    assert said.code != 0
    assert words in " ".join(said.err.split())


def test_a_project_without_a_scheduler_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "scheduler", "status")
    assert said.code == 1
    assert "There has been no scheduler in this project" in said.out
    assert Said(capsys, "scheduler", "stop").out == "No scheduler is at work.\n"


def test_a_unit_for_systemd_names_the_project(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = Said(capsys, "scheduler", "unit").out
    assert f"-m cargobike.pipelines.scheduling {tmp_path}/project" in said
    assert "KillMode=process" in said


def test_a_scheduler_in_the_background_is_found_and_ended(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        started = Said(capsys, "scheduler", "--detach")
        assert started.code == 0, started.err
        assert "is at work since" in started.out
        assert "There is a scheduler already" in Said(capsys, "scheduler", "--detach").out
        assert Said(capsys, "scheduler", "status", "--json").json["is_alive"] is True
    finally:
        ended = Said(capsys, "scheduler", "stop")
    assert "has ended" in ended.out
    assert Said(capsys, "scheduler", "status").code == 1
