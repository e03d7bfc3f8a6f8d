"""An experiment that was fed with a training dataset is repeated with the version that it had, or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cargobike import data, experiment, features, project
from cargobike.core.errors import InvalidInputError
from cargobike.features import TrainingDataset
from cargobike.results import Result


def _train(data: Any) -> float:
    return float(sum(batch["value"].sum() for batch in data))


def _dataset(scale: float) -> TrainingDataset:
    teams = features.create_group("teams", key="team_id", event_time="at")
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0 * scale, 4.0]})
    view = features.create_view("team_value", features=["budget"], label="value")
    labels = {"team_id": [1, 2] * 5, "at": ["2026-02-01"] * 10, "value": [scale * number for number in range(10)]}
    return view.create_training_dataset("season", labels, split={"train": 0.8, "test": 0.2}, seed=1)


@pytest.fixture
def launched() -> Result:
    """An experiment that was fed with the first of two versions."""
    first = _dataset(1.0)
    result = experiment.launch(_train, {}, data=first, num_trials=1, workers=0, quiet=True)
    assert _dataset(100.0).version == 2
    return result


def _place(part: str = "train") -> Path:
    return project.current().root / "datasets" / "season" / "1" / part


def test_the_recorded_version_is_used_though_there_is_a_newer_one(launched: Result) -> None:
    shutil.rmtree(_place("test"))  # what it was not fed with is of no concern
    again = experiment.reproduce(launched.id, quiet=True)
    assert again.is_same
    repeated = experiment.load(again.id).asked.feeding
    assert repeated == launched.asked.feeding
    assert (repeated.source, repeated.version, repeated.part) == ("season", "1", "train")
    newest = features.training_dataset("season")
    fresh = experiment.launch(_train, {}, data=newest, num_trials=1, workers=0, quiet=True)
    assert [trial.value for trial in fresh.trials] == [100 * (trial.value or 0.0) for trial in launched.trials]


@pytest.mark.parametrize("call", ["reproduce", "resume"])
def test_a_version_that_was_removed_is_refused(launched: Result, call: str) -> None:
    shutil.rmtree(_place().parent)
    refused = r"The data of this experiment, season:1/train, is not what it was: .*Bring it back as it was, or launch"
    with pytest.raises(InvalidInputError, match=refused):
        getattr(experiment, call)(launched.id, quiet=True)


def test_a_version_that_was_written_anew_is_refused(launched: Result) -> None:
    shutil.rmtree(_place())
    shutil.copytree(project.current().root / "datasets" / "season" / "2" / "train", _place())
    with pytest.raises(InvalidInputError, match=r"season:1/train, is not what it was: .* has changed since"):
        experiment.reproduce(launched.id, quiet=True)


@pytest.mark.parametrize("change", ["removed", "cut"])
def test_files_of_it_that_are_not_as_they_were_are_refused_before_anything_starts(
    launched: Result, change: str
) -> None:
    (file,) = _place().rglob("*.parquet")
    if change == "removed":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-10])
    before = len(experiment.list())
    words = "is gone" if change == "removed" else "bytes instead of"
    with pytest.raises(InvalidInputError, match=rf"season:1/train, is not what it was: .*{words}"):
        experiment.reproduce(launched.id, quiet=True)
    assert len(experiment.list()) == before


def test_a_table_is_repeated_in_its_version_and_refused_when_it_was_removed() -> None:
    table = data.write({"value": [1.0, 2.0]}, "points")
    result = experiment.launch(_train, {}, data=table, num_trials=1, workers=0, quiet=True)
    data.write({"value": [5.0]}, "points")
    assert experiment.reproduce(result.id, quiet=True).is_same
    shutil.rmtree(project.current().root / "data" / "points" / "1")
    with pytest.raises(InvalidInputError, match="The data of this experiment, points:1, is not what it was"):
        experiment.reproduce(result.id, quiet=True)
