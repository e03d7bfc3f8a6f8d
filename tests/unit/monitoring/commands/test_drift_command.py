"""`cargobike drift`: what it prints, and what its exit code says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from cargobike.cli.app import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    random = np.random.default_rng(1)
    monkeypatch.chdir(tmp_path)
    for name, rows, move in (("usual", 3000, 0), ("same", 600, 0), ("moved", 600, 0.6)):
        table = pa.table(
            {"x": random.normal(move, 1, rows), "y": random.normal(size=rows), "c": ["a", "b"] * (rows // 2)}
        )
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return tmp_path


def drift(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["drift", *arguments])


def test_tables_that_look_alike_end_with_0(folder: Path) -> None:
    done = drift("usual.parquet", "same.parquet")
    assert done.exit_code == 0, done.output
    assert "No alarm: 600 rows look like the reference" in done.stdout


def test_an_alarm_ends_with_3_and_names_the_column(folder: Path) -> None:
    done = drift("usual.parquet", "moved.parquet", "--report", "out/report.html")
    assert done.exit_code == 3
    assert "ALARM: 1 shift in 600 rows" in done.stdout
    assert "the mean moved by" in done.stdout
    assert "usual.parquet" in (folder / "out" / "report.html").read_text()


def test_json_has_every_figure(folder: Path) -> None:
    done = drift("usual.parquet", "moved.parquet", "--json", "--columns", "x, c", "--seed", "4")
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["alarm"]) == (3, True)
    (window,) = answer["windows"]
    assert window["features"][0]["feature"] == "x"
    assert set(window["statistics"]["psi"]) == {"x", "c"}
    assert window["ignored"] == ["y"]


def test_windows_are_judged_one_by_one_with_a_policy(folder: Path) -> None:
    done = drift("usual.parquet", "moved.parquet", "--window", "150", "--alarm", "3 of 4", "--false-alarms", "0.01")
    assert done.exit_code == 3
    words = [line.split()[2] for line in done.stdout.splitlines()[1:]]
    assert words == ["unusual", "unusual", "ALARM", "ALARM"]
    assert drift("usual.parquet", "moved.parquet", "--window", "150", "--alarm", "5 of 5").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["usual.parquet", "none.parquet"], "none.parquet"),
        (["usual.parquet", "same.parquet", "--columns", "z"], "there is no column 'z'"),
        (["usual.parquet", "same.parquet", "--false-alarms", "2"], "false_alarms=2"),
        (["usual.parquet", "same.parquet", "--alarm", "often"], "such as '3 of 5'"),
        (["usual.parquet", "same.parquet", "--report", "x.pdf"], "x.html"),
        (["usual.parquet", "same.parquet", "--window", "-3"], "window"),
    ],
)
def test_what_cannot_be_compared_ends_with_1(folder: Path, arguments: list[str], words: str) -> None:
    done = drift(*arguments)
    assert done.exit_code == 1
    assert words in done.output
