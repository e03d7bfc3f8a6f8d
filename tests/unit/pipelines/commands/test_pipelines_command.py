"""`cargobike pipelines`, for people and for programs."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cargobike.cli.app import app

PIPELINE = """
    from dataclasses import dataclass
    from cargobike import pipelines

    @dataclass
    class Loaded:
        values: list

    @pipelines.step
    def load(rows):
        print("loading", rows)
        return Loaded(list(range(rows)))

    @pipelines.step
    def total(loaded, scale):
        if scale > 100:
            raise ValueError("too large")
        assert isinstance(loaded, Loaded)
        return sum(loaded.values) * scale

    def retrain(rows: int, scale: float = 1.0):
        loaded = load(rows)
        assert loaded == Loaded(list(range(rows)))
        return total(loaded, scale), pipelines.cause()
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "flow.py"
    path.write_text(textwrap.dedent(PIPELINE))
    return f"{path}:retrain"


def call(*words: str) -> Any:
    return CliRunner().invoke(app, ["pipelines", *words])


def test_a_pipeline_is_run_shown_and_removed(file: str) -> None:
    done = call("run", file, "--set", "rows=4", "--set", "scale=0.5", "--run-id", "mine", "--cause", '{"alarm": 3}')
    assert (done.exit_code, done.output.splitlines()[-1][:29]) == (0, "retrain mine is completed, 2 "), done.output

    shown = json.loads(call("show", "last", "--json").stdout)
    assert shown["result"]["value"] == [3.0, {"alarm": 3}]
    assert (shown["params"], shown["cause"]) == ({"rows": 4, "scale": 0.5}, {"alarm": 3})
    assert [step["after"] for step in shown["steps"]] == [[], [1]]
    assert shown["steps"][1]["inputs"]["loaded"]["form"] == "step"
    assert [run["id"] for run in json.loads(call("ls", "--json").stdout)] == ["mine"]
    assert "mine  retrain   completed  2 completed" in call("ls").stdout
    assert "2  total  completed  1" in call("show").stdout
    assert call("graph").stdout == "✓ 1 load\n✓ 2 total  ← 1\n"
    assert "s1 -> s2;" in call("graph", "--dot").stdout
    assert "s1 --> s2" in call("graph", "--mermaid").stdout
    assert json.loads(call("graph", "--json").stdout)["edges"] == [[1, 2]]
    assert call("logs").stdout == "1 load: loading 4\n"
    assert call("logs", "--step", "1").stdout == "loading 4\n"
    assert json.loads(call("logs", "--json").stdout)[0]["stdout"] == "loading 4\n"
    assert json.loads(call("resume", "mine", "--json").stdout)["state"] == "completed"
    assert json.loads(call("cancel", "mine", "--json").stdout) == {"run": "mine", "state": "completed"}
    assert json.loads(call("rm", "mine", "--yes", "--json").stdout) == {"removed": ["mine"]}
    assert json.loads(call("ls", "--json").stdout) == []


def test_a_run_that_failed_has_an_exit_code_and_says_how_to_go_on(file: str) -> None:
    done = call("run", file, "--set", "rows=4", "--set", "scale=1000", "--run-id", "mine", "--json")

    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["state"], told["counts"]) == ("failed", {"completed": 1, "failed": 1})
    assert told["steps"][1]["error"].splitlines()[-1] == "ValueError: too large"
    assert "ValueError: too large" in call("show").stdout
    again = call("resume", "mine")
    assert again.exit_code == 1
    assert "`cargobike pipelines resume mine` goes on with it." in again.output


def test_mistakes_are_said(file: str) -> None:
    assert "no parameter 'row'; it has rows, scale. Did you mean 'rows'?" in call("run", file, "--set", "row=1").output
    assert call("run", file, "--set", "rows").exit_code == 2
    assert "is no JSON object" in call("run", file, "--cause", "[1]").output
    assert "There is no run in" in call("show", "mine").output
    assert "cannot be the id of a run" in call("run", file, "--set", "rows=1", "--run-id", "../x").output
