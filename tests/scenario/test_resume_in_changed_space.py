"""An experiment that goes on in a changed space, is taken up again after that, and cut in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cargobike import Searchspace, experiment
from cargobike.cli.app import app
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from support.cut_copies import cut_copy

NARROW = Searchspace(x=("DOUBLE", [0.0, 1.0]))
WIDE = Searchspace(x=("DOUBLE", [0.2, 5.0]), y=("INTEGER", [1, 3]))


def train(x: float, y: int = 2) -> float:
    return -((x - 3) ** 2) - abs(y - 2)


@pytest.mark.parametrize(("optimizer", "repeats"), [("tpe", 1), ("random", 2)])
def test_a_search_goes_on_in_a_wider_space(optimizer: str, repeats: int) -> None:
    first = experiment.launch(train, NARROW, optimizer=optimizer, num_trials=5, repeats=repeats, workers=1, seed=3)
    assert first.best is not None
    result = experiment.resume(first.id, space=WIDE, num_trials=14)
    assert len(result.trials) == 14
    assert all(NARROW.contains(one.params) for one in result.trials[:5])
    assert all(WIDE.contains(one.params) for one in result.trials[5:])
    assert result.best is not None
    assert result.best.value is not None
    assert result.best.value > (first.best.value or 0.0)
    assert [change.trials for change in result.record.space_changes] == [5]
    assert result.asked.search.space == WIDE.describe()
    lines = len(ExperimentFolder(result.folder).journal.read_bytes().splitlines())
    cut = experiment.resume(cut_copy(result, lines - 12))
    assert [one.params for one in cut.trials] == [one.params for one in result.trials], "the change is replayed too"
    assert len(experiment.resume(result.id, num_trials=15).trials) == 15


def test_the_command_line_takes_a_file(tmp_path: Path) -> None:
    first = experiment.launch(train, NARROW, num_trials=2, workers=1, seed=1)
    path = tmp_path / "wider.yaml"
    path.write_text("x: {double: [0.0, 9.0]}\n")
    done = CliRunner().invoke(app, ["resume", first.id, "--space", str(path), "--num-trials", "4", "--quiet"])
    assert done.exit_code == 0, done.output
    assert len(experiment.load(first.id).record.space_changes) == 1
    shown = CliRunner().invoke(app, ["show", first.id], env={"COLUMNS": "200"}).output
    assert "after 2 trials: x 0 … 1 → 0 … 9" in shown
    (change,) = json.loads(CliRunner().invoke(app, ["show", first.id, "--json"]).stdout)["space_changes"]
    assert (change["after_trials"], change["changed"]) == (2, ["x 0 … 1 → 0 … 9"])


def test_what_cannot_be_changed_is_refused_before_anything_is_written() -> None:
    grid = experiment.launch(train, {"x": [0.1, 0.2]}, workers=1)
    before = (grid.folder / "journal.jsonl").read_bytes()
    with pytest.raises(InvalidInputError, match="is a search by 'gridsearch'"):
        experiment.resume(grid.id, space=WIDE)
    assert (grid.folder / "journal.jsonl").read_bytes() == before
