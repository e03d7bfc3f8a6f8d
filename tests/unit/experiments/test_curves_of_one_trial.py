"""The points of one trial are read from the part of the journal that holds them, and are what all of it says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.facts import (
    AttemptLost,
    AttemptStarted,
    ExperimentEnded,
    ExperimentResumed,
    Fact,
    Reported,
    TrialEnded,
    TrialPaused,
    TrialResumed,
    TrialSuggested,
)
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import Curve
from cargobike.experiments import reading
from cargobike.experiments.reading import metrics_of, read_record
from cargobike.experiments.results.result import Result
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact

ID = "20270115-080000-test"
LONG = {"text": "x" * 300}
"""Lines of such a length that a few hundred fill more than a place is looked for."""


def written(tmp_path: Path, facts: Sequence[Fact]) -> ExperimentFolder:
    folder = ExperimentFolder(tmp_path / "experiments" / ID)
    with JournalWriter(folder.journal) as writer:
        writer.append(facts)
    return folder


def reports(trial: int, at: float, numbers: Sequence[int], attempt: int = 1) -> list[Fact]:
    return [
        Reported(
            at=at + 0.01 * place,
            trial=trial,
            step=10 * number,
            metrics={"loss": at + number, "seen": float(number)},
            number=number,
            attempt=attempt,
        )
        for place, number in enumerate(numbers)
    ]


def begun(trial: int, at: float, attempt: int = 1) -> list[Fact]:
    suggested = [TrialSuggested(at=at, trial=trial, params={}, info=LONG)] if attempt == 1 else []
    return [*suggested, AttemptStarted(at=at, trial=trial, attempt=attempt, workers=("w0",))]


def one_after_another(trials: int, *, first: int = 0, start: float = 100.0) -> list[Fact]:
    facts = list[Fact]()
    for trial in range(first, first + trials):
        at = start + 10 * (trial - first)
        facts += begun(trial, at) + reports(trial, at + 1, range(1, 21))
        facts += [TrialEnded(at=at + 9, trial=trial, state="completed", value=1.0)]
    return facts


def loaded(folder: ExperimentFolder) -> Result:
    return Result.from_record(read_record(folder), folder)


def points(curves: dict[str, Curve]) -> dict[str, list[tuple[int, float]]]:
    return {name: list(zip(curve.steps, curve.values, strict=True)) for name, curve in curves.items()}


def assert_all_curves(folder: ExperimentFolder) -> None:
    result = loaded(folder)
    assert result.trials
    for trial in result.trials:
        assert points(trial.curves) == points(metrics_of(folder.journal, trial.number)), trial.number


@pytest.fixture
def only_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if all of a journal is read for the points of one trial."""
    monkeypatch.setattr(reading, "metrics_of", lambda *_: pytest.fail("all of the journal was read"))


@pytest.mark.usefixtures("only_a_part")
def test_the_curves_of_each_trial_are_found_by_its_times(tmp_path: Path) -> None:
    folder = written(tmp_path, [first_fact(at=1), *one_after_another(200)])
    assert folder.journal.stat().st_size > 500_000
    assert len(loaded(folder).trials[150].curves["loss"]) == 20
    assert_all_curves(folder)


@pytest.mark.usefixtures("only_a_part")
def test_a_trial_that_was_paused_lost_and_taken_up_again_has_each_report_once(tmp_path: Path) -> None:
    facts = [first_fact(at=1), *begun(0, 2), *reports(0, 3, [1, 2, 3]), TrialPaused(at=4, trial=0)]
    facts += one_after_another(100, first=1)
    facts += [TrialResumed(at=2000, trial=0), *begun(0, 2000, 2), *reports(0, 2001, [4, 5, 6], 2)]
    facts += [AttemptLost(at=2002, trial=0, attempt=2, reason="its worker died")]
    facts += one_after_another(100, first=101, start=3000)
    facts += [*begun(0, 5000, 3), *reports(0, 5001, [4, 5], 3), TrialEnded(at=5002, trial=0, state="stopped")]
    folder = written(tmp_path, facts)
    assert list(loaded(folder).trials[0].curves["seen"].values) == [1, 2, 3, 4, 5]
    assert_all_curves(folder)


@pytest.mark.usefixtures("only_a_part")
def test_a_result_sees_what_a_running_trial_reports_later(tmp_path: Path) -> None:
    folder = written(tmp_path, [first_fact(at=1), *one_after_another(100), *begun(100, 2000)])
    running = loaded(folder).trials[100]
    assert running.curves == {}
    with JournalWriter(folder.journal) as writer:
        writer.append(reports(100, 2001, [1, 2, 3]))
    assert list(running.curves["seen"].values) == [1, 2, 3]


def test_a_clock_that_was_set_back_between_two_drivers_hides_no_point(tmp_path: Path) -> None:
    facts = [first_fact(at=1), *one_after_another(100), ExperimentEnded(at=2000, state="interrupted")]
    facts += [ExperimentResumed(at=50, num_trials=200), *one_after_another(100, first=100, start=60)]
    folder = written(tmp_path, facts)
    assert_all_curves(folder)
    assert all(len(trial.curves["loss"]) == 20 for trial in loaded(folder).trials)


def test_reports_without_numbers_are_counted(tmp_path: Path) -> None:
    facts = [first_fact(at=1), *begun(0, 2), *one_after_another(100, first=1)]
    facts += [Reported(at=3000, trial=0, step=1, metrics={"loss": 2.0})]
    assert_all_curves(written(tmp_path, facts))
    facts += [Reported(at=3001, trial=0, step=2, metrics={"loss": 3.0})]
    facts += [TrialEnded(at=3002, trial=0, state="completed", value=1.0)]
    assert_all_curves(written(tmp_path / "ended", facts))


def test_a_report_that_is_damaged_is_an_error_as_everywhere(tmp_path: Path) -> None:
    folder = written(tmp_path, [first_fact(at=1), *one_after_another(100)])
    trial = loaded(folder).trials[50]
    data = folder.journal.read_bytes()
    place = data.index(b'"trial":50,"step":100,')
    folder.journal.write_bytes(data[: place + 20] + b"9" + data[place + 21 :])
    with pytest.raises(StoreError, match="damaged"):
        _ = trial.curves


def test_a_journal_that_was_replaced_is_read_as_it_is_now(tmp_path: Path) -> None:
    folder = written(tmp_path, [first_fact(at=1), *one_after_another(100)])
    trial = loaded(folder).trials[50]
    folder.journal.unlink()
    written(tmp_path, [first_fact(at=1), *begun(50, 2), *reports(50, 3, [1, 2])])
    assert list(trial.curves["seen"].values) == [1, 2]
