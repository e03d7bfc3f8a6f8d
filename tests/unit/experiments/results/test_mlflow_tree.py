"""An experiment in MLflow's format has a run for each trial, with all its points."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml

from cargobike.core.asked import Aim, Asked, Search
from cargobike.core.errors import InvalidInputError
from cargobike.core.facts import (
    AnyFact,
    AttemptStarted,
    ExperimentEnded,
    ExperimentStarted,
    Reported,
    TrialEnded,
    TrialSuggested,
)
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.records import TrialState
from cargobike.experiments.results.mlflow_tree import write_mlflow
from cargobike.store.history.annotations import annotate
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.stores import JournalBuilder


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    journal = JournalBuilder(ProjectFolder(tmp_path / "here"), "20270101-000000-aaaa", name="digits", metric="score")
    number = journal.start(lr=0.1, act="relu")
    for step in range(3):
        journal.report(number, step, **{"score": step / 2, "../../evil": math.nan})
    journal.finish(number, 0.9)
    journal.finish(journal.start(lr=0.2), state=TrialState.FAILED, error="no")
    journal.end()
    files = journal.folder.trial(0).files
    files.mkdir(parents=True)
    (files / "weights.bin").write_bytes(b"w")
    (files / "link").symlink_to("/etc/passwd")
    annotate(journal.folder, note="said")
    return journal.folder


def test_the_tree_is_one_that_mlflow_reads(folder: ExperimentFolder, tmp_path: Path) -> None:
    place = write_mlflow(folder, tmp_path / "mlruns")
    told = yaml.safe_load((place / "meta.yaml").read_text())
    assert told["experiment_id"] == place.name
    assert place.name.isdigit()
    assert (place / "tags" / "mlflow.note.content").read_text() == "said"
    runs = {yaml.safe_load(path.read_text())["run_name"]: path.parent for path in place.glob("*/meta.yaml")}
    assert set(runs) == {"trial 0000", "trial 0001"}
    first = runs["trial 0000"]
    described = yaml.safe_load((first / "meta.yaml").read_text())
    assert (described["status"], described["run_id"]) == (3, first.name)
    assert yaml.safe_load((runs["trial 0001"] / "meta.yaml").read_text())["status"] == 4
    assert (first / "params" / "act").read_text() == "relu"
    points = [line.split() for line in (first / "metrics" / "score").read_text().splitlines()]
    assert [(value, step) for _, value, step in points] == [("0.0", "0"), ("0.5", "1"), ("1.0", "2")]
    assert (first / "metrics" / "final.score").read_text().split()[1:] == ["0.9", "2"]
    assert (first / "metrics" / "_.._evil").read_text().count("nan") == 3
    assert [path.name for path in (first / "artifacts").iterdir()] == ["weights.bin"]
    with pytest.raises(InvalidInputError, match="exported to"):
        write_mlflow(folder, tmp_path / "mlruns")


def test_each_repeat_is_a_run_below_its_trial(tmp_path: Path) -> None:
    folder = ProjectFolder(tmp_path / "here").experiment("20270101-000000-aaaa")
    asked = Asked(search=Search(repeats=2), aim=Aim(metric="score"))
    facts: list[AnyFact] = [ExperimentStarted(at=1.0, id=folder.id, asked=asked)]
    for run, value in ((0, 0.5), (1, 0.7)):
        facts += [
            TrialSuggested(at=2.0, trial=run, params={"lr": 0.1}, seed=40 + run, repeat_of=0 if run else None),
            AttemptStarted(at=3.0, trial=run, attempt=1, workers=("w0",)),
            Reported(at=4.0, trial=run, step=0, metrics={"score": value - 0.1}),
            TrialEnded(at=5.0, trial=run, state="completed", value=value, metrics={"score": value}),
        ]
    with JournalWriter(folder.journal) as journal:
        journal.append([*facts, ExperimentEnded(at=6.0, state="completed")])
    place = write_mlflow(folder, tmp_path / "mlruns")
    runs = {yaml.safe_load(path.read_text())["run_name"]: path.parent for path in place.glob("*/meta.yaml")}
    assert set(runs) == {"trial 0000", "trial 0000 repeat 0", "trial 0000 repeat 1"}
    assert {path.name for path in place.iterdir() if path.is_dir() and path.name != "tags"} == {
        run.name for run in runs.values()
    }, "every folder of a run is one that MLflow can read"

    def points(run: str, metric: str) -> list[tuple[float, str]]:
        lines = (runs[run] / "metrics" / metric).read_text().splitlines()
        return [(round(float(line.split()[1]), 6), line.split()[2]) for line in lines]

    assert points("trial 0000", "score") == [(0.5, "0")]
    assert points("trial 0000", "final.score") == [(0.6, "0")]
    assert points("trial 0000", "score.spread") == [(round(0.2 / 2**0.5, 6), "0")]
    assert points("trial 0000", "score.by_repeat") == [(0.5, "0"), (0.7, "1")]
    assert points("trial 0000", "failures") == [(0.0, "0")]
    for index, score in enumerate((0.5, 0.7)):
        name = f"trial 0000 repeat {index}"
        assert (runs[name] / "tags" / "mlflow.parentRunId").read_text() == runs["trial 0000"].name
        assert (runs[name] / "tags" / "cargobike.seed").read_text() == str(40 + index)
        assert points(name, "score") == [(round(score - 0.1, 6), "0")]
        assert points(name, "final.score") == [(score, "0")]
