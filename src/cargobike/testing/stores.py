"""A contract suite for indexes, and a builder of journals to test stores with.

Write your own `Index`, then:

```python
class TestMyIndex(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        return MyIndex(project)
```
"""

from __future__ import annotations

import math
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.asked import Asked, Feeding, Search
from cargobike.core.errors import NotFoundError
from cargobike.core.facts import (
    AttemptLost,
    AttemptStarted,
    ExperimentEnded,
    ExperimentResumed,
    ExperimentStarted,
    Fact,
    Reported,
    TrialEnded,
    TrialPaused,
    TrialResumed,
    TrialSuggested,
    WorkerJoined,
    pack_number,
    pack_numbers,
)
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.records import Direction, ExperimentState, Params, TrialState
from cargobike.experiments.index.index import ExperimentRow, Index, Where
from cargobike.experiments.reading import read_record
from cargobike.store.files.locking import DriverLock
from cargobike.store.history.annotations import annotate
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact

__all__ = ["IndexContract", "JournalBuilder", "assert_rows_equal_record"]

START_S = 1_800_000_000.0


class JournalBuilder:
    """Writes the journal of an experiment as a driver would, one second per fact.

    Example:
        >>> import pathlib, tempfile
        >>> project = ProjectFolder(pathlib.Path(tempfile.mkdtemp()))
        >>> journal = JournalBuilder(project, "20270115-080000-abcd", name="digits")
        >>> journal.complete(value=0.9, lr=0.1)
        >>> journal.end()
    """

    def __init__(
        self,
        project: ProjectFolder,
        experiment_id: str,
        *,
        name: str = "",
        direction: Direction = "max",
        metric: str | None = None,
        num_trials: int | None = None,
        constraints: tuple[str, ...] = (),
        start_s: float = START_S,
    ) -> None:
        self.folder: ExperimentFolder = project.experiment(experiment_id)
        self.now_s = start_s - 1
        self.trials = 0
        self._lock = DriverLock(self.folder)
        self._writer = JournalWriter(self.folder.journal)
        self.add(
            first_fact(
                at=self.tick(),
                id=experiment_id,
                name=name,
                direction=direction,
                metric=metric,
                num_trials=num_trials,
                constraints=constraints,
                function="train",
                optimizer="random",
            )
        )
        self.add(WorkerJoined(at=self.tick(), worker="w0", host="tower", pid=4711))

    def hold(self) -> JournalBuilder:
        """Hold the driver's lock, as a living driver does, until `let_go`."""
        self._lock.acquire()
        return self

    def let_go(self) -> None:
        """Release the lock and close the file, as the death of a driver does."""
        self._lock.release()
        self._writer.close()

    def tick(self) -> float:
        """Advance by a second and return the time."""
        self.now_s += 1
        return self.now_s

    def add(self, *facts: Fact) -> None:
        """Append any facts."""
        self._writer.append(facts)

    def suggest(self, **params: object) -> int:
        """Suggest a trial; returns its number."""
        number, self.trials = self.trials, self.trials + 1
        self.add(TrialSuggested(at=self.tick(), trial=number, params=dict(params), seed=number, told=0))
        return number

    def start(self, **params: object) -> int:
        """Suggest and start a trial; returns its number."""
        number = self.suggest(**params)
        self.attempt(number)
        return number

    def attempt(self, number: int, attempt: int = 1) -> None:
        """Start an attempt of a trial."""
        self.add(AttemptStarted(at=self.tick(), trial=number, attempt=attempt, workers=("w0",)))

    def report(self, number: int, step: int, **metrics: float) -> None:
        """Report metrics of a trial."""
        self.add(Reported(at=self.tick(), trial=number, step=step, metrics=pack_numbers(metrics)))

    def finish(
        self,
        number: int,
        value: float | None = None,
        state: TrialState = TrialState.COMPLETED,
        error: str = "",
    ) -> None:
        """End a trial."""
        self.add(
            TrialEnded(
                at=self.tick(),
                trial=number,
                state=state.value,  # type: ignore[arg-type]  # the test gives a final one
                value=None if value is None else pack_number(value),
                metrics={} if value is None else {"score": pack_number(value)},
                error=error or None,
            )
        )

    def complete(self, value: float, **params: object) -> None:
        """Suggest, start, report and complete a trial."""
        number = self.start(**params)
        self.report(number, 1, score=value)
        self.finish(number, value)

    def end(self, state: ExperimentState = ExperimentState.COMPLETED, reason: str = "") -> None:
        """End the experiment and let go of it."""
        self.add(ExperimentEnded(at=self.tick(), state=state.value, reason=reason))  # type: ignore[arg-type]
        self.let_go()


class IndexContract(ABC):
    """What every `Index` promises; subclass it in a test module and say how to make yours."""

    @abstractmethod
    def make_index(self, project: ProjectFolder) -> Index:
        """Open an index of this project; called several times for the same one."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> ProjectFolder:
        """Return an empty project."""
        return ProjectFolder(tmp_path / "project")

    @pytest.fixture
    def index(self, project: ProjectFolder) -> Iterator[Index]:
        """Open an index of the project, and close it after the test."""
        project.experiments.mkdir(parents=True)
        index = self.make_index(project)
        yield index
        index.close()

    def test_an_empty_project_has_no_rows(self, index: Index) -> None:
        """Nothing in, nothing out."""
        index.sync()
        assert index.experiments() == []
        assert index.names() == []

    def test_rows_equal_the_folded_journal(self, index: Index, project: ProjectFolder) -> None:
        """Every number in the index is the one that the journal tells."""
        journal = _lively(project, "20270101-000000-aaaa")
        index.sync()
        assert_rows_equal_record(index, journal.folder)

    def test_syncing_after_every_fact_equals_syncing_once(self, index: Index, project: ProjectFolder) -> None:
        """Reading on from an offset gives what reading the whole gives."""
        grown = _lively(project, "20270101-000000-aaaa").folder
        index.sync()
        at_once = index.experiment(grown.id)
        lines = grown.journal.read_bytes().splitlines(keepends=True)
        grown.journal.unlink()
        index.sync()
        for line in lines:
            with grown.journal.open("ab") as file:
                file.write(line)
            index.sync()
        assert_rows_equal_record(index, grown)
        assert index.experiment(grown.id) == at_once

    def test_what_a_resumed_experiment_makes_anew_is_counted_once(self, index: Index, project: ProjectFolder) -> None:
        """Index after every fact, while reports take the place of others and an interrupted trial goes on."""
        journal = JournalBuilder(project, "20270101-000000-aaaa")
        number = journal.start(x=1)
        made = [1, 2, 3, 4, 2, 3, 1, 2]
        for report in made[:6]:
            metrics = pack_numbers({"score": float(report)} if report % 2 else {"loss": 0.5})
            journal.add(Reported(at=journal.tick(), trial=number, step=report, metrics=metrics, number=report))
            index.sync()
        reason = "interrupted by the user"
        journal.add(AttemptLost(at=journal.tick(), trial=number, attempt=1, reason=reason, interrupted=True))
        journal.add(ExperimentEnded(at=journal.tick(), state="interrupted", reason=reason))
        index.sync()
        [trial] = index.trials(journal.folder.id)
        assert (trial.points, trial.last_step, trial.state, trial.error) == (2, 3, TrialState.STOPPED, reason)
        journal.add(ExperimentResumed(at=journal.tick()))
        index.sync()
        [trial] = index.trials(journal.folder.id)
        assert (trial.points, trial.state, trial.error) == (2, TrialState.PENDING, None)
        journal.attempt(number, 2)
        for report in made[6:]:
            metrics = pack_numbers({"score": float(report)} if report % 2 else {"loss": 0.5})
            journal.add(
                Reported(at=journal.tick(), trial=number, step=report, metrics=metrics, number=report, attempt=2)
            )
            index.sync()
        [trial] = index.trials(journal.folder.id)
        assert (trial.points, trial.last_step) == (1, 1)
        assert_rows_equal_record(index, journal.folder)
        journal.let_go()

    def test_experiments_are_found_by_name_tag_and_time(self, index: Index, project: ProjectFolder) -> None:
        """Conditions are added up, and letters that patterns know stand for themselves."""
        first = JournalBuilder(project, "20270101-000000-aaaa", name="digits_1", start_s=START_S)
        second = JournalBuilder(project, "20270102-000000-bbbb", name="Digits%2", start_s=START_S + 1000)
        index.sync()
        annotate(first.folder, add=["good", 'a "quoted" one'])
        annotate(second.folder, add=["goodish"], note="said")
        index.sync()

        def found(**where: Any) -> list[str]:
            return [row.name for row in index.experiments(where=Where(**where))]

        assert found(name="digits") == ["Digits%2", "digits_1"]
        assert found(name="s_") == ["digits_1"]
        assert found(name="%") == ["Digits%2"]
        assert found(name="?igits*") == ["Digits%2", "digits_1"]
        assert found(name="igits*") == []
        assert found(tags=["good"]) == ["digits_1"]
        assert found(tags=["good", 'a "quoted" one']) == ["digits_1"]
        assert found(tags=["oo"]) == []
        assert found(since=START_S + 500) == ["Digits%2"]
        assert found(until=START_S + 500) == ["digits_1"]
        assert found(name="digits", since=START_S + 5000) == []
        assert found(user="nobody") == []
        assert index.experiment(second.folder.id).notes == 1
        annotate(first.folder, remove=["good"])
        index.sync()
        assert index.experiment(first.folder.id).tags == ('a "quoted" one',)

    def test_a_rebuild_equals_what_syncs_made(self, index: Index, project: ProjectFolder) -> None:
        """Nothing in the index is more than the journals say."""
        journal = JournalBuilder(project, "20270101-000000-aaaa", name="one")
        index.sync()
        journal.complete(0.5, lr=0.1)
        index.sync()
        journal.complete(math.nan, lr=0.2)
        journal.end()
        index.sync()
        grown = index.experiments(), index.trials(journal.folder.id)
        index.rebuild()
        assert repr((index.experiments(), index.trials(journal.folder.id))) == repr(grown)

    def test_another_index_of_the_project_sees_the_same(self, index: Index, project: ProjectFolder) -> None:
        """What is open elsewhere does not matter."""
        _lively(project, "20270101-000000-aaaa")
        index.sync()
        other = self.make_index(project)
        other.sync()
        assert other.experiments() == index.experiments()
        other.close()

    def test_a_torn_tail_is_not_counted_until_it_is_whole(self, index: Index, project: ProjectFolder) -> None:
        """Half a line is not a fact."""
        journal = JournalBuilder(project, "20270101-000000-aaaa")
        number = journal.start(lr=0.1)
        before = journal.folder.journal.read_bytes()
        journal.finish(number, 0.25)
        line = journal.folder.journal.read_bytes()[len(before) :]
        journal.folder.journal.write_bytes(before)
        with journal.folder.journal.open("ab") as file:
            file.write(line[:30])
        index.sync()
        assert index.experiment(journal.folder.id).trials_done == 0
        with journal.folder.journal.open("ab") as file:
            file.write(line[30:])
        index.sync()
        assert index.experiment(journal.folder.id).best_value == 0.25

    def test_a_journal_that_was_replaced_is_read_anew(self, index: Index, project: ProjectFolder) -> None:
        """A file put back from a copy does not add up with what was read before."""
        first = JournalBuilder(project, "20270101-000000-aaaa")
        first.complete(0.9, lr=0.1)
        first.end()
        index.sync()
        other = JournalBuilder(ProjectFolder(project.root / "copies"), first.folder.id, direction="min")
        for value in (0.3, 0.2, 0.4):
            other.complete(value, lr=0.2)
        other.end()
        shutil.copyfile(other.folder.journal, first.folder.journal)
        index.sync()
        assert index.experiment(first.folder.id).best_value == 0.2
        assert len(index.trials(first.folder.id)) == 3

    def test_the_journal_of_another_experiment_is_a_problem(self, index: Index, project: ProjectFolder) -> None:
        """What another experiment found is not shown as the outcome of this one."""
        own = _lively(project, "20270101-000000-aaaa").folder
        foreign = project.experiment("20270101-000001-bbbb")
        foreign.root.mkdir()
        shutil.copyfile(own.journal, foreign.journal)
        index.sync()
        assert index.experiment(own.id).problem == ""
        assert f"is the journal of {own.id}, not of {foreign.id}" in index.experiment(foreign.id).problem
        assert index.trials(foreign.id) == []

    def test_a_damaged_journal_does_not_hide_the_others(self, index: Index, project: ProjectFolder) -> None:
        """One bad file is one bad row."""
        good = JournalBuilder(project, "20270101-000000-aaaa")
        good.end()
        bad = JournalBuilder(project, "20270101-000001-bbbb")
        bad.complete(0.5, lr=0.1)
        bad.end()
        text = bad.folder.journal.read_bytes()
        bad.folder.journal.write_bytes(text.replace(b'"value":0.5', b'"value":9.5'))
        index.sync()
        assert index.experiment(good.folder.id).problem == ""
        assert "damaged" in index.experiment(bad.folder.id).problem
        assert index.experiment(bad.folder.id).best_value is None
        bad.folder.journal.write_bytes(text)
        index.sync()
        assert index.experiment(bad.folder.id).problem == ""
        assert index.experiment(bad.folder.id).best_value == 0.5

    def test_a_deleted_experiment_disappears(self, index: Index, project: ProjectFolder) -> None:
        """The folder is the experiment."""
        journal = _lively(project, "20270101-000000-aaaa")
        index.sync()
        shutil.rmtree(journal.folder.root)
        index.sync()
        assert index.experiments() == []
        assert index.trials(journal.folder.id) == []

    def test_a_driver_that_died_leaves_a_lost_experiment(self, index: Index, project: ProjectFolder) -> None:
        """Running means that the lock is held."""
        journal = JournalBuilder(project, "20270101-000000-aaaa").hold()
        index.sync()
        assert index.experiment(journal.folder.id).state is ExperimentState.RUNNING
        journal.let_go()
        index.sync()
        assert index.experiment(journal.folder.id).state is ExperimentState.LOST
        with DriverLock(journal.folder), JournalWriter(journal.folder.journal) as writer:
            writer.append([ExperimentResumed(at=journal.tick())])
            index.sync()
            assert index.experiment(journal.folder.id).state is ExperimentState.RUNNING
            writer.append([ExperimentEnded(at=journal.tick(), state="completed")])
        index.sync()
        assert index.experiment(journal.folder.id).state is ExperimentState.COMPLETED

    def test_lists_are_filtered_sorted_and_cut(self, index: Index, project: ProjectFolder) -> None:
        """Lists come as asked for, rows without the sorted value last."""
        for number, (name, value, state) in enumerate(
            [
                ("b", 0.5, ExperimentState.COMPLETED),
                ("c", 0.9, ExperimentState.FAILED),
                ("a", math.nan, ExperimentState.COMPLETED),
            ]
        ):
            journal = JournalBuilder(
                project, f"2027010{number + 1}-000000-aaaa", name=name, start_s=START_S + 100 * number
            )
            journal.complete(value, lr=0.1)
            journal.end(state)
        index.sync()
        assert _names(index.experiments()) == ["a", "c", "b"]
        assert _names(index.experiments(limit=1)) == ["a"]
        assert _names(index.experiments(sort="name", descending=False)) == ["a", "b", "c"]
        assert _names(index.experiments(sort="best")) == ["c", "b", "a"]
        assert _names(index.experiments(sort="best", descending=False)) == ["b", "c", "a"]
        assert _names(index.experiments(states=[ExperimentState.FAILED])) == ["c"]

    @pytest.mark.parametrize(("direction", "expected"), [("max", [2, 0, 1, 3]), ("min", [0, 2, 1, 3])])
    def test_trials_are_sorted_by_what_is_best(
        self, index: Index, project: ProjectFolder, direction: Direction, expected: list[int]
    ) -> None:
        """Best means the direction's best; NaN and missing values come last."""
        journal = JournalBuilder(project, "20270101-000000-aaaa", direction=direction)
        for value in (0.1, math.nan, 0.7):
            journal.complete(value, lr=value)
        journal.start(lr=1)
        index.sync()
        assert [row.number for row in index.trials(journal.folder.id, sort="best")] == expected
        running = index.trials(journal.folder.id, states=[TrialState.RUNNING])
        assert [row.number for row in running] == [3]
        assert math.isnan(index.trials(journal.folder.id)[1].value or 0.0)

    def test_a_trial_that_breaks_a_limit_is_never_the_best(self, index: Index, project: ProjectFolder) -> None:
        """Also not after the index has read on from what it remembered."""
        journal = JournalBuilder(project, "20270101-000000-aaaa", constraints=("cost <= 5",))
        for value, cost in ((0.9, 50.0), (0.5, 1.0)):
            number = journal.start(lr=value)
            journal.add(
                TrialEnded(at=journal.tick(), trial=number, state="completed", value=value, metrics={"cost": cost})
            )
        for _ in range(2):
            index.sync()
            assert index.experiment(journal.folder.id).best_trial == 1
            journal.start(lr=1)

    def test_scores_come_in_the_order_in_which_trials_ended(self, index: Index, project: ProjectFolder) -> None:
        """Only finite values are scores."""
        journal = JournalBuilder(project, "20270101-000000-aaaa")
        for value in (0.3, math.inf, 0.1, math.nan, 0.7):
            journal.complete(value, lr=value)
        index.sync()
        assert index.scores(journal.folder.id) == [(0, 0.3), (2, 0.1), (4, 0.7)]
        assert index.scores("20270101-000000-none") == []

    def test_what_experiments_came_from_is_told_the_newest_first(self, index: Index, project: ProjectFolder) -> None:
        """Lineage asks for nothing else, and reads no journals."""
        fed = Asked(name="b\0", feeding=Feeding(kind="dataset", source="season", version="2", part="train"))
        plain, warm = Asked(name="plain"), Asked(search=Search(warm_start=("20270101-000000-aaaa",)))
        for number, asked in enumerate((fed, plain, warm)):
            folder = project.experiment(f"20270101-00000{number}-aaaa")
            with JournalWriter(folder.journal) as journal:
                journal.append([ExperimentStarted(at=START_S + number, id=folder.id, asked=asked)])
        index.sync()
        assert [(one, origin.name, origin.relation) for one, _, origin in index.origins()] == [
            ("20270101-000002-aaaa", "20270101-000000-aaaa", "made from"),
            ("20270101-000000-aaaa", "season", "trained on"),
        ]
        assert [origin.detail for _, _, origin in index.origins()] == ["warm start", "part train"]

    def test_an_unknown_experiment_is_not_found(self, index: Index) -> None:
        """Asking for what is not there is an error, not an empty answer."""
        with pytest.raises(NotFoundError, match="nothing-here"):
            index.experiment("nothing-here")

    def test_people_may_abbreviate(self, index: Index, project: ProjectFolder) -> None:
        """Ids can be given by name, by their start or end, or as the last one."""
        for number, name in enumerate(["digits", "mnist", "mnist"]):
            experiment_id = f"2027010{number + 1}-000000-{'abc'[number] * 4}"
            JournalBuilder(project, experiment_id, name=name, start_s=START_S + number).end()
        index.sync()
        first, second, third = (f"2027010{n + 1}-000000-{'abc'[n] * 4}" for n in range(3))
        assert index.resolve("last") == third
        assert index.resolve(second) == second
        assert index.resolve("digits") == first
        assert index.resolve("bbbb") == second
        assert index.resolve("20270103") == third
        assert index.resolve("mnist") == third, "the newest of several with the same name"
        with pytest.raises(NotFoundError, match=rf"fits 3 experiments: {third}, {second}, {first}"):
            index.resolve("2027")
        with pytest.raises(NotFoundError, match="Did you mean 'digits'"):
            index.resolve("digit")


def assert_rows_equal_record(index: Index, folder: ExperimentFolder) -> None:
    """Compare what an index says about an experiment with its journal, folded."""
    record = read_record(folder)
    row = index.experiment(folder.id)
    assert (row.state, row.reason, row.name) == (record.state, record.reason, record.header.name)
    assert (row.started_at, row.ended_at, row.last_at) == (record.started_at, record.ended_at, record.last_at)
    assert row.counts == record.counts
    assert row.duration_s == record.duration_s
    assert list(row.space_changes) == record.space_changes
    assert row.worker_seconds == pytest.approx(record.worker_seconds)
    best = record.best
    assert row.best_trial == (best.number if best else None)
    assert row.best_value == (best.value if best else None)
    assert row.best_params == (best.params if best else None)
    rows = index.trials(folder.id)
    assert [one.number for one in rows] == sorted(record.trials)
    for one in rows:
        trial = record.trials[one.number]
        for name in ("state", "params", "value", "metrics", "attempts", "error", "started_at", "ended_at"):
            assert _alike(getattr(one, name), getattr(trial, name)), (one.number, name)
        for name in ("seed", "worker", "peak_memory_bytes", "info"):
            assert _alike(getattr(one, name), getattr(trial, name)), (one.number, name)
        last = list(trial.curve)[-1] if len(trial.curve) else (None, None)
        assert repr((one.last_step, one.last_value)) == repr(last)
        assert one.points == len(trial.curve)


def _lively(project: ProjectFolder, experiment_id: str) -> JournalBuilder:
    """Write a journal in which most things happen."""
    journal = JournalBuilder(project, experiment_id, name="lively", num_trials=5)
    params: Params = {"lr": 1e-3, "act": "relu", "layers": 2, "tags": ["a", "ü"]}
    journal.complete(0.5, **params)
    stopped = journal.start(lr=0.2)
    journal.report(stopped, 1, score=0.1)
    journal.report(stopped, 2, score=math.inf)
    journal.finish(stopped, state=TrialState.STOPPED)
    failed = journal.start(lr=0.3)
    journal.finish(failed, state=TrialState.FAILED, error="Traceback …\nValueError: no")
    moved = journal.start(lr=0.4)
    journal.add(AttemptLost(at=journal.tick(), trial=moved, attempt=1, reason="worker w0 was killed"))
    journal.attempt(moved, 2)
    journal.add(TrialPaused(at=journal.tick(), trial=moved, step=3))
    journal.add(TrialResumed(at=journal.tick(), trial=moved, info={"rung": 2}))
    journal.attempt(moved, 3)
    journal.finish(moved, 0.75)
    journal.suggest(lr=0.5)
    for high in (0.6, 0.7):
        space = [{"name": "lr", "type": "DOUBLE", "low": 0.1, "high": high}]
        journal.add(ExperimentEnded(at=journal.tick(), state="interrupted", reason="Ctrl-C"))
        journal.add(ExperimentResumed(at=journal.tick(), num_trials=9, space=space, defaults={"depth": 2}))
        journal.suggest(lr=high)
    journal.end(ExperimentState.INTERRUPTED, "Ctrl-C")
    return journal


def _names(rows: list[ExperimentRow]) -> list[str]:
    return [row.name for row in rows]


def _alike(found: object, wanted: object) -> bool:
    """Tell whether two values are the same: NaN is itself here, and a database need not know the sign of nothing."""
    return found == wanted or repr(found) == repr(wanted)
