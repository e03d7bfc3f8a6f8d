from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from cargobike.cli.app import app
from cargobike.experiments.commands.run import read_parameters

PROGRAM = """
print("imported")

def train(lr, act="relu"):
    return -abs(lr - 0.2)

def broken(lr):
    raise RuntimeError(f"no luck with {lr}")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["run", *words])
    assert result.exit_code == code, result.output
    return result


def test_values_are_json_where_they_can_be() -> None:
    given = ["lr=1e-3", "n=3", "act=relu", "on=true", "sizes=[1,2]", "text=a=b", "none=null"]
    assert read_parameters(given) == {
        "lr": 1e-3,
        "n": 3,
        "act": "relu",
        "on": True,
        "sizes": [1, 2],
        "text": "a=b",
        "none": None,
    }


@pytest.mark.parametrize("given", [["lr"], ["=3"], ["1x=3"], ["lr=1", "lr=2"]])
def test_pairs_that_are_none_are_refused(given: list[str]) -> None:
    with pytest.raises(typer.BadParameter):
        read_parameters(given)


def test_one_run_prints_json_and_nothing_else(program: Path) -> None:
    result = call(f"{program}:train", "--param", "lr=0.5", "--name", "once", "--json")
    told = json.loads(result.stdout)
    assert (told["name"], told["state"], told["trials_done"]) == ("once", "completed", 1)
    assert told["best"]["params"] == {"lr": 0.5}


def test_a_search_tells_its_best_and_where_to_look(program: Path, tmp_path: Path) -> None:
    space = tmp_path / "space.json"
    space.write_text('{"lr": [0.1, 0.2, 0.3]}')
    words = ("--space", str(space), "--optimizer", "grid", "--num-trials", "3", "--workers", "2", "--quiet")
    output = call(f"{program}:train", *words).stdout
    assert "with lr=0.2" in output
    assert "More: cargobike show " in output


def test_a_failing_function_is_told_without_our_traceback(program: Path) -> None:
    result = call(f"{program}:broken", "--param", "lr=0.5", "--quiet", code=1)
    assert "RuntimeError: no luck with 0.5" in result.stderr
    assert "cargobike/cli" not in result.stderr


@pytest.mark.parametrize("words", [(), ("--param", "lr=1", "--space", "s.yaml"), ("--param", "lr")])
def test_wrong_calls_exit_with_2(program: Path, words: tuple[str, ...]) -> None:
    assert "Usage:" in call(f"{program}:train", *words, code=2).stderr


def test_a_name_that_does_not_fit_is_told_before_anything_starts(program: Path) -> None:
    result = call(f"{program}:train", "--param", "l_r=1", code=1)
    assert "'l_r'" in result.stderr
    assert json.loads(CliRunner().invoke(app, ["ls", "--json"]).stdout) == []
