from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner, Result

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.serving.commands.log import log, tidy
from support.logged_requests import NOON, logging_to, take_some

app = typer.Typer()
app.command("log")(log)
app.command("tidy")(tidy)


@pytest.fixture(autouse=True)
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    for turn in range(2):
        with logging_to(tmp_path / "project") as kept:
            take_some(kept, 15, start=15 * turn)
            kept.take(f"bad{turn}", NOON, 0.001, 1, 400, [["wrong"]], None)


def call(*words: str) -> Result:
    return CliRunner().invoke(app, words, catch_exceptions=False)


def test_the_last_requests_are_shown() -> None:
    done = call("log", "digits")
    lines = done.stdout.splitlines()
    assert len(lines) == 22, done.stdout
    assert lines[0].split() == ["TIME", "(UTC)", "REQUEST", "VERSION", "STATUS", "LATENCY", "INPUT", "OUTPUT"]
    assert "r29" in lines[-2]
    assert "x=[29, 0.5, -1]  score=14.5" in lines[-2]
    assert lines[-1] == "12 more; --limit 0 shows all."
    assert '["wrong"]' in call("log", "digits", "--limit", "0").stdout


def test_json_and_files_for_programs(tmp_path: Path) -> None:
    rows = json.loads(call("log", "digits", "--json", "--limit", "1").stdout)
    assert [(row["request_id"], row["at"], row["input.x"]) for row in rows] == [
        ("r29", "2026-05-01T12:00:29+00:00", [29.0, 0.5, -1.0])
    ]
    assert "32 rows are in" in call("log", "digits", "-o", str(tmp_path / "rows.parquet")).stdout
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 32
    call("log", "digits", "-o", str(tmp_path / "rows.csv"), "--since", "2026-05-01 12:00:28")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 3
    with pytest.raises(InvalidInputError, match=r"write to a file that ends in \.parquet or \.csv"):
        call("log", "digits", "-o", str(tmp_path / "rows.txt"))


def test_nothing_in_a_window_is_said() -> None:
    assert "has answered no requests" in call("log", "digits", "--since", "1h").stdout
    with pytest.raises(NotFoundError, match=r"no deployment 'digit'"):
        call("log", "digit")


def test_small_files_are_merged_and_old_ones_deleted() -> None:
    assert call("tidy", "digits").stdout == "2 files became 1, 0 were deleted.\n"
    assert len(call("log", "digits", "--limit", "0").stdout.splitlines()) == 33
    answer = json.loads(call("tidy", "digits", "--keep-days", "3", "--json").stdout)
    assert answer["days_deleted"] == 1
    with pytest.raises(NotFoundError, match=r"no deployment"):
        call("tidy", "digit")
