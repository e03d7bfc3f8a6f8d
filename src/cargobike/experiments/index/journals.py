"""How the journals of experiments become rows of the index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import sqlalchemy as sa

from cargobike.core.asked import Asked
from cargobike.core.errors import StoreError
from cargobike.core.facts import (
    AnyFact,
    ExperimentEnded,
    ExperimentResumed,
    ExperimentStarted,
    Reported,
    decode_header,
)
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import ExperimentState, Trial
from cargobike.experiments.index.tables import (
    annotation_values,
    experiment_values,
    experiments,
    restore_record,
    restore_trial,
    trial_values,
    trials,
)
from cargobike.experiments.index.watched import WatchedExperiments, annotated_at
from cargobike.experiments.reading import journal_reader, settle
from cargobike.store.history.annotations import Annotations, read_annotations
from cargobike.store.index.tables import BYTES_AT_ONCE, Reading, Row, Tables, Values, insert_rows

_MOST_NUMBERS: Final = 500


class ExperimentTables(WatchedExperiments, Tables):
    """The tables of experiments and their trials."""

    owners: ClassVar[Mapping[sa.Table, sa.Column[Any]]] = {
        experiments: experiments.c.id,
        trials: trials.c.experiment_id,
    }

    def begin(self, connection: sa.Connection, folder: Path, row: Row | None, key: str) -> Reading:
        """Begin to read the journal of an experiment from where its row says that reading ended."""
        return _ExperimentReading(connection, ExperimentFolder(folder), row, key)


TABLES: Final = ExperimentTables()


def _annotations(folder: ExperimentFolder) -> Annotations:
    try:
        return read_annotations(folder)
    except StoreError:
        return Annotations()  # unreadable notes must not hide the experiment


class _ExperimentReading(Reading):
    """From a row (or nothing) to a record, and which trials it touched.

    Of the trials that were read earlier, only those are restored that new facts speak of, so that reading on takes as
    long as what is new, however many trials there are.
    """

    def __init__(self, connection: sa.Connection, folder: ExperimentFolder, row: Row | None, key: str) -> None:
        self.folder = folder
        self.key = key
        self.start: int = row["read_bytes"] if row is not None else 0
        self.reader = journal_reader(folder, self.start)
        self.before: dict[int, Row] = {}
        self.record: ExperimentRecord | None = None
        self.touched: set[int] = set()
        self._connection = connection
        self._mine = sa.and_(trials.c.project == key, trials.c.experiment_id == folder.id)
        self._reads_anew = False
        self.annotated_at = annotated_at(folder)  # looked at before they are read
        if row is not None and decode_header(row["header"]).repeats > 1:
            # Rows hold settings, not the runs that they are the means of: all of the journal is read again.
            self.start, self.reader = 0, journal_reader(folder, 0)
            connection.execute(sa.delete(trials).where(self._mine))
        elif row is not None:
            best = [] if row["best_trial"] is None else self._rows(trials.c.number == row["best_trial"])
            self.before = {one["number"]: one for one in best}
            self.record = restore_record(row, best)

    def read_on(self) -> None:
        """Read some more, and at the end of the journal find out whether its driver is alive."""
        facts = self.reader.read_new(BYTES_AT_ONCE)
        if self.record is None and facts:
            self.record = fold(facts[:1])
            facts = facts[1:]
        record = self.record
        if record is None:
            self.is_complete = True
            return
        self._restore(facts)
        for fact in facts:
            record.apply(fact)
        if self.reader.offset - self.start < BYTES_AT_ONCE:
            facts += settle(record, self.reader, self.folder, self._restore)
            self.is_complete = True
        self._touch(facts)
        if any(map(self._goes_back, facts)):
            self._begin_anew()

    def _restore(self, facts: Sequence[AnyFact]) -> None:
        """Restore the trials that facts are about, as far as they were read earlier."""
        if self.record is None or not self.start:
            return
        numbers = {fact.trial for fact in facts if hasattr(fact, "trial")} - self.before.keys()
        rows = [row for some in _in_parts(sorted(numbers)) for row in self._rows(trials.c.number.in_(some))]
        if any(type(fact) is ExperimentResumed for fact in facts):
            rows += self._rows(trials.c.is_interrupted)
        if any(type(fact) is ExperimentEnded for fact in facts):  # it may tell the error of the first one
            first = sa.select(sa.func.min(trials.c.number)).where(self._mine).scalar_subquery()
            rows += self._rows(trials.c.number == first)
        for row in rows:
            if row["number"] not in self.before:
                self.before[row["number"]] = row
                self.record.trials[row["number"]] = restore_trial(row, self.record.goals)

    def _rows(self, condition: sa.ColumnElement[bool]) -> list[Row]:
        return list(self._connection.execute(sa.select(trials).where(self._mine, condition)).mappings())

    def _goes_back(self, fact: AnyFact) -> bool:
        """Tell whether a report takes the place of one that was read earlier, whose points are only counted."""
        if type(fact) is not Reported or fact.trial not in self.before:
            return False
        return 0 < fact.number <= self.before[fact.trial]["reports"] and not self._reads_anew

    def _begin_anew(self) -> None:
        """Read the journal from its start."""
        self._reads_anew, self.is_complete = True, False
        self.start, self.record, self.before, self.touched = 0, None, {}, set()
        self.reader = journal_reader(self.folder)
        self.read_on()

    def values(self, problem: str) -> Values | None:
        """Return the columns of the experiment."""
        if self.record is None and problem:
            self.record = _unreadable(self.folder)
        if self.record is None:
            return None
        return {
            **experiment_values(self.record),
            **annotation_values(_annotations(self.folder)),
            "annotations_mtime_ns": self.annotated_at,
        }

    def write_more(self, connection: sa.Connection) -> None:
        """Write the rows of the trials that were touched."""
        if self.record is None:
            return
        numbers = sorted(self.touched & self.record.trials.keys())
        changed = [self.record.trials[number] for number in numbers]
        if self._reads_anew:
            connection.execute(trials.delete().where(self._mine))
        _replace_trials(connection, self.key, self.folder.id, changed, {} if self._reads_anew else self.before)

    def _touch(self, facts: Sequence[AnyFact]) -> None:
        self.touched.update(getattr(fact, "trial", -1) for fact in facts)
        if self.record is not None and self.record.settings is not None:
            self.touched.update(self.record.trials)  # a fact about a run changes the trial of its setting
        if any(type(fact) is ExperimentResumed for fact in facts):
            self.touched.update(number for number, row in self.before.items() if row["is_interrupted"])


def _replace_trials(
    connection: sa.Connection, key: str, experiment_id: str, changed: Sequence[Trial], before: Mapping[int, Row]
) -> None:
    if not changed:
        return
    old = [{"old": trial.number} for trial in changed if trial.number in before]
    if old:
        mine = (trials.c.project == key, trials.c.experiment_id == experiment_id)
        connection.execute(trials.delete().where(*mine, trials.c.number == sa.bindparam("old")), old)
    rows = [{"project": key, **trial_values(experiment_id, trial, before.get(trial.number))} for trial in changed]
    insert_rows(connection, trials, rows)


def _in_parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield numbers in parts of such a length that every database takes one in a query."""
    for start in range(0, len(numbers), _MOST_NUMBERS):
        yield numbers[start : start + _MOST_NUMBERS]


def _unreadable(folder: ExperimentFolder) -> ExperimentRecord:
    changed_at = folder.journal.stat().st_mtime
    record = ExperimentRecord(ExperimentStarted(at=changed_at, id=folder.id, asked=Asked(name="?")))
    record.state = ExperimentState.LOST
    return record
