"""A trial of a result has everything: values, curves, output, files, checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.facts import CheckpointSaved
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.records import Trial, TrialState
from cargobike.errors import NotFoundError
from cargobike.experiments.reading import read_record
from cargobike.experiments.results.result import Result
from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
from cargobike.testing.stores import JournalBuilder

ID = "20270115-080000-abcd"


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    project = ProjectFolder(tmp_path)
    journal = JournalBuilder(project, ID, name="digits")
    journal.complete(value=0.5, lr=0.1)
    journal.complete(value=0.9, lr=0.2)
    journal.finish(journal.start(lr=0.3), state=TrialState.FAILED, error="ValueError: no")
    trial = project.experiment(ID).trial(1)
    trial.files.mkdir(parents=True)
    trial.root.mkdir(parents=True)
    (trial.files / "plot.png").write_bytes(b"png")
    trial.stdout.write_text("hello\n")
    trial.output("stderr", rank=2).write_text("warning\n")
    saved = Checkpoints(trial.checkpoints).save({"weights": [1, 2]}, step=4)
    journal.add(CheckpointSaved(at=journal.tick(), trial=1, step=4, path=str(saved.path)))
    journal.end()
    return project.experiment(ID)


@pytest.fixture
def result(folder: ExperimentFolder) -> Result:
    return Result.from_record(read_record(folder), folder)


def test_the_best_is_one_of_the_trials(result: Result) -> None:
    best = result.best
    assert best is not None
    assert best is result.trials[1]
    assert isinstance(best, Trial)
    assert (best.number, best.params, best.value, best.metric) == (1, {"lr": 0.2}, 0.9, 0.9)
    assert result.value == best.value


def test_a_trial_knows_its_output_and_its_files(result: Result) -> None:
    best = result.best
    assert best is not None
    assert best.logs == result.logs(best) == result.logs(1) == "hello\n"
    assert best.output("stderr", rank=2) == result.logs(best, "stderr", rank=2) == "warning\n"
    assert [path.name for path in best.artifacts] == ["plot.png"]
    assert result.artifacts(best) == best.artifacts
    assert {name: list(curve) for name, curve in best.curves.items()} == {"score": [(1, 0.9)]}
    assert result.curves(best) == result.curves(1) == best.curves
    assert result.trials[0].logs == ""
    assert result.trials[0].artifacts == []


def test_a_trial_gives_back_what_it_saved(result: Result) -> None:
    best = result.best
    assert best is not None
    checkpoint = best.checkpoint
    assert checkpoint is not None
    assert checkpoint.load() == {"weights": [1, 2]}
    assert checkpoint.path.name.endswith("step4")
    assert checkpoint.step == 4
    assert [one.path for one in checkpoint.all()] == [checkpoint.path]
    assert result.trials[0].checkpoint is None


def test_a_checkpoint_that_is_gone_is_an_error(result: Result, folder: ExperimentFolder) -> None:
    best = result.best
    assert best is not None
    checkpoint = best.checkpoint
    assert checkpoint is not None
    Checkpoints(folder.trial(1).checkpoints).clear()
    with pytest.raises(NotFoundError, match=f"Trial 1 of {ID} has no intact checkpoint"):
        checkpoint.load()
    with pytest.raises(NotFoundError, match="no intact checkpoint"):
        _ = checkpoint.path


def test_a_trial_that_failed_says_why_and_has_no_value(result: Result) -> None:
    failed = result.trials[2]
    assert (failed.state, failed.value, failed.metric, failed.error) == ("failed", None, None, "ValueError: no")
    assert result.failures == [failed]
    assert result.failures[0] is failed


def test_a_number_that_there_is_not_is_an_error(result: Result) -> None:
    assert result.trial(2) is result.trials[2]
    assert result.trial(result.trials[2]) is result.trials[2]
    for number in (3, -1):
        with pytest.raises(NotFoundError, match=f"There is no trial {number} in {ID}; it has 3, counted from 0"):
            result.logs(number)


def test_it_says_shortly_what_it_is(result: Result) -> None:
    assert (
        repr(result.best) == "Trial(number=1, state='completed', value=0.9, params={'lr': 0.2}, metrics={'score': 0.9})"
    )
