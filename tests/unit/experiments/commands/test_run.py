from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from cargobike.cli.app import app
from cargobike.cli.parameters import read_parameters

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


def test_no_workers_means_this_process(program: Path) -> None:
    program.write_text("import os\n\ndef where(lr):\n    return os.getpid()\n")
    told = json.loads(call(f"{program}:where", "--param", "lr=0.5", "--workers", "0", "--json").stdout)
    assert told["best"]["value"] == os.getpid()
    assert "0 runs all in this process" in " ".join(call("--help").output.split())


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


@pytest.mark.parametrize("words", [("--param", "lr=1", "--space", "s.yaml"), ("--param", "lr")])
def test_wrong_calls_exit_with_2(program: Path, words: tuple[str, ...]) -> None:
    assert "Usage:" in call(f"{program}:train", *words, code=2).stderr


def test_a_function_without_parameters_just_runs(program: Path) -> None:
    program.write_text("def train():\n    return 3.5\n\ndef needs(lr):\n    return lr\n")
    assert "Best: 3.5" in call(f"{program}:train", "--quiet").stdout
    refused = call(f"{program}:needs", "--quiet", code=1).stderr
    assert "'lr' is needed by the function, but not given" in refused
    assert "Give --space FILE to search, or --param NAME=VALUE to run once." in refused


def test_a_run_that_returns_nothing_has_run_to_its_end(program: Path) -> None:
    program.write_text("def train():\n    pass\n")
    assert "It ran to its end and returned no number." in call(f"{program}:train", "--quiet").stdout


def test_a_file_without_a_function_is_answered_with_its_functions(program: Path) -> None:
    for reference in (str(program), f"{program}:"):
        refused = call(reference, code=1).stderr
        assert f"names no function; write '{program}:train' or '{program}:broken'" in refused
    assert "imported" not in refused


def test_a_program_that_launches_by_itself_can_be_run(program: Path) -> None:
    readme = (Path(__file__).parents[4] / "README.md").read_text("utf-8")
    program.write_text(readme.split("<!-- snippet: launch -->\n```python\n")[1].split("```")[0])
    output = call(f"{program}:train", "--param", "lr=0.01", "--param", "layers=3", "--quiet").stdout
    assert "Best: 1 with lr=0.01 layers=3" in output


def test_a_name_that_does_not_fit_is_told_before_anything_starts(program: Path) -> None:
    result = call(f"{program}:train", "--param", "l_r=1", code=1)
    assert "'l_r'" in result.stderr
    assert json.loads(CliRunner().invoke(app, ["ls", "--json"]).stdout) == []
