"""Programs searched from the command line and from Python, on real workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cargobike import experiment
from cargobike.cli.app import app

PROGRAM = """
import argparse, pathlib, sys
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float, required=True)
parser.add_argument("--out", default=".")
arguments = parser.parse_args()
if arguments.x > 3.5:
    sys.exit("too large")
for epoch in range(9):
    print(f"epoch {epoch} score {arguments.x * (epoch + 1)}")
pathlib.Path(arguments.out, "model.txt").write_text("weights")
print(-(arguments.x - 2) ** 2)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


def test_a_program_is_searched_from_the_command_line(folder: Path) -> None:
    command = "search --param x=1,2,3,4 --workers 2 --json -- python train.py --x {x} --out {folder}"
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert shown["name"] == "python train.py"
    result = experiment.load(shown["id"])
    assert result.best is not None
    assert (result.best.params, result.best.value) == ({"x": 2}, 0.0)
    assert result.counts == {"completed": 3, "failed": 1}
    assert [path.name for path in result.best.artifacts] == ["model.txt"]
    assert result.best.logs.splitlines()[0] == "epoch 0 score 2.0"
    error = result.failures[0].error or ""
    assert "ended with exit code 1" in error
    assert "  too large" in error
    assert "Traceback" not in error


def test_reports_of_a_program_let_a_search_stop_it(folder: Path) -> None:
    program = experiment.command(
        ["python", "train.py", "--x", "{x}"], report=r"epoch (?P<step>\d+) score (?P<score>\S+)"
    )
    space = [{"x": value} for value in (3.0, 2.0, 1.0, 0.5)]
    result = experiment.launch(
        program, space, early_stop="median", workers=1, quiet=True, metric="score", optimizer=None
    )
    assert result.best is not None
    assert result.best.params == {"x": 3.0}
    assert list(result.best.curves["score"].steps) == list(range(9))


def test_a_program_without_a_place_for_a_parameter_is_refused(folder: Path) -> None:
    command = "search --param y=1..2 --num-trials 2 -- python train.py --x {x}"
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code != 0
    text = done.output + str(done.exception)
    assert "'y' is given, but nothing in the command stands for it: write {y} where it belongs" in text
    assert "{x} is in the command, but there is no such parameter" in text
