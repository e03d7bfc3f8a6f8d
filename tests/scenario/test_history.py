"""An experiment remembers what was run, and two can be compared."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cargobike import experiment, project, trial
from cargobike.cli.app import app
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.results.comparison import compare
from cargobike.store.history.sources import read_source
from support import programs
from support.scripts import run_script

SCRIPT = """
import json, os
from cargobike import experiment
import own_model

def train(x):
    return own_model.score(x)

if __name__ == "__main__":
    result = experiment.launch(train, {"x": [1, 2]}, quiet=True, versioned_resources=["data.txt"], seed=SEED)
    print(json.dumps([result.id, str(result.folder)]))
"""


def launch_in(folder: Path, *, bonus: int = 0, seed: int = 1) -> ExperimentFolder:
    folder.mkdir(exist_ok=True)
    # As long as it is large: Python takes files of equal length and second for unchanged.
    (folder / "own_model.py").write_text(f"def score(x):\n    return x + {bonus}\n" + "#" * bonus)
    (folder / "data.txt").write_text(f"data {bonus}")
    _, place = run_script(folder, SCRIPT.replace("SEED", str(seed)), "go.py")
    return ExperimentFolder(Path(place))


def test_everything_that_was_run_is_kept(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    programs.require("git")
    subprocess.run(["git", "init", "-q", str(code)], check=True)
    folder = launch_in(code)
    result = experiment.load(folder.id)
    snapshot = result.snapshot
    assert snapshot is not None
    assert snapshot.is_complete
    assert snapshot.problems == ()
    assert snapshot.git is not None
    assert set(snapshot.git.changed) >= {"go.py", "own_model.py"}
    assert snapshot.launcher is not None
    assert (snapshot.launcher.kind, snapshot.launcher.path) == ("script", str(code / "go.py"))
    assert (folder.code / snapshot.launcher.file).read_text() == (code / "go.py").read_text()
    assert "def train(x)" in (folder.code / "function.py").read_text()
    assert read_source(folder.code / "sources.zip", "0/own_model.py") == (code / "own_model.py").read_text()
    assert (folder.resources / snapshot.resources[0].sha256).read_text() == "data 0"
    assert "msgspec==" in (folder.code / "requirements.lock").read_text()
    assert result.worker_seconds > 0
    assert "@" in result.user


def test_comparing_shows_what_differs_and_nothing_else(tmp_path: Path) -> None:
    first = launch_in(tmp_path / "code")
    second = launch_in(tmp_path / "code", bonus=5, seed=2)
    found = compare(first, second)
    assert found.settings == {"seed": (1, 2)}
    assert [(one.name, one.status) for one in found.code] == [("go.py", "changed"), ("own_model.py", "changed")]
    assert "+    return x + 5" in next(one.diff for one in found.code if one.name == "own_model.py")
    assert found.packages == {}
    assert found.environment == {}
    assert set(found.resources) == {"data.txt"}
    assert found.results["best value"] == (2.0, 7.0)
    told = CliRunner().invoke(app, ["compare", first.id, second.id, "--json"])
    assert json.loads(told.stdout)["results"]["best value"] == [2.0, 7.0]
    shown = CliRunner().invoke(app, ["compare", first.id, second.id])
    assert "-    return x + 0" in shown.stdout
    same = compare(first, first)
    assert (same.settings, same.code, same.results) == ({}, (), {})


def test_a_killed_driver_leaves_its_snapshot(tmp_path: Path) -> None:
    state = run_script(
        tmp_path / "code",
        """
        import json, os, signal, time
        from pathlib import Path
        from cargobike import experiment, project

        def train(x):
            time.sleep(60)

        if __name__ == "__main__":
            driver = os.fork()
            if driver == 0:
                experiment.launch(train, {"x": [0]}, workers=1, quiet=True)
            deadline = time.monotonic() + 60
            while not list(project.current().experiments.glob("*/code/snapshot.json")):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            os.kill(driver, signal.SIGKILL)
            os.waitpid(driver, 0)
            result = experiment.load("last")
            print(json.dumps([str(result.state), result.snapshot.launcher.path]))
        """,
    )
    assert state == ["lost", str(tmp_path / "code" / "script.py")]


def test_artifacts_are_what_a_trial_leaves_or_hands_over(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("kept")

    def train(x: int) -> int:
        Path("own.txt").write_text("own")
        assert trial.artifact("own.txt") == Path("own.txt").resolve()
        trial.artifact(elsewhere, "plots/other.txt")
        with pytest.raises(InvalidInputError, match="relative path"):
            trial.artifact(elsewhere, "../out.txt")
        with pytest.raises(InvalidInputError, match="no file"):
            trial.artifact("missing")
        return x

    result = experiment.launch(train, params={"x": 1}, quiet=True)
    files = result.artifacts(0)
    assert [path.name for path in files] == ["own.txt", "other.txt"]
    assert files[1].read_text() == "kept"
    assert files[1].parent.name == "plots"


def test_artifacts_are_kept_by_trials_that_work_in_the_launch_directory(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("kept")

    def train(x: int) -> int:
        trial.artifact(tmp_path / "a.txt")
        return x

    result = experiment.launch(train, params={"x": 1}, quiet=True, working_directory="launch")
    assert [path.read_text() for path in result.artifacts(0)] == ["kept"]


def test_tags_and_notes_are_added_later(tmp_path: Path) -> None:
    result = experiment.launch(lambda x: x, {"x": [1]}, quiet=True, name="tagged")
    result.add_tag("paper", "best so far")
    result.add_note("the one in the paper")
    again = experiment.load(result.id)
    assert again.tags == ("best so far", "paper")
    assert [note.text for note in again.notes] == ["the one in the paper"]
    listed = CliRunner().invoke(app, ["ls", "--tag", "paper", "--json"])
    assert [row["tags"] for row in json.loads(listed.stdout)] == [["best so far", "paper"]]
    again.remove_tag("paper")
    assert json.loads(CliRunner().invoke(app, ["ls", "--tag", "paper", "--json"]).stdout) == []
    told = CliRunner().invoke(app, ["show", "last"])
    assert "best so far" in told.stdout
    assert "the one in the paper" in told.stdout


def test_wrong_resources_are_refused_before_anything_starts() -> None:
    with pytest.raises(InvalidInputError, match="no-such-file"):
        experiment.launch(lambda x: x, {"x": [1]}, versioned_resources=["no-such-file"], quiet=True)
    assert project.experiment_ids() == []


def test_of_a_notebook_the_cells_are_kept_in_the_order_of_their_runs(tmp_path: Path) -> None:
    """IPython keeps the text of every cell in a list named In; the notebook's own file may lag behind it."""
    place = run_script(
        tmp_path / "code",
        """
        import json, os
        from pathlib import Path
        from cargobike import experiment

        In = ["", "import cargobike", "", "result = launch()"]
        os.environ["JPY_SESSION_NAME"] = str(Path("study.ipynb").resolve())
        Path("study.ipynb").write_text('{"cells": []}')

        if __name__ == "__main__":
            result = experiment.launch(lambda x: x, {"x": [1]}, quiet=True)
            print(json.dumps(str(result.folder)))
        """,
    )
    folder = ExperimentFolder(Path(place))
    snapshot = experiment.load(folder.id).snapshot
    assert snapshot is not None
    assert snapshot.launcher is not None
    assert (snapshot.launcher.kind, snapshot.launcher.file) == ("notebook", "launcher.ipynb")
    assert (folder.code / "cells.py").read_text() == "# %% [1]\nimport cargobike\n\n# %% [3]\nresult = launch()\n\n"


def test_a_driver_that_died_before_its_snapshot_gets_one_when_it_is_resumed() -> None:
    result = experiment.launch(lambda x: x, {"x": [1]}, quiet=True)
    folder = ExperimentFolder(result.folder)
    folder.snapshot.unlink()
    again = experiment.resume(result.id, num_trials=1, quiet=True)
    assert again.snapshot is None, "nothing was run, so nothing is known"
    lines = folder.journal.read_bytes().splitlines(keepends=True)
    folder.journal.write_bytes(b"".join(lines[:2]))
    again = experiment.resume(result.id, quiet=True)
    assert again.snapshot is not None
    assert again.snapshot.problems == ("the snapshot was taken when the experiment was taken up again",)
