"""How the journals of experiments become rows of the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import sqlalchemy as sa

from cargobike.core.asked import Asked
from cargobike.core.errors import StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact, ExperimentStarted
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import ExperimentState, Trial
from cargobike.core.registering.kinds import Kind
from cargobike.experiments.index.tables import (
    annotation_values,
    experiment_values,
    experiments,
    restore_record,
    trial_values,
    trials,
)
from cargobike.experiments.kind import EXPERIMENTS
from cargobike.experiments.reading import settle
from cargobike.store.files.locking import is_held
from cargobike.store.history.annotations import Annotations, read_annotations
from cargobike.store.index.tables import BYTES_AT_ONCE, Reading, Row, Tables, Values
from cargobike.store.journal.journal import JournalReader

_OPEN: Final = {ExperimentState.RUNNING.value, ExperimentState.LOST.value}


class ExperimentTables(Tables):
    """The tables of experiments and their trials."""

    product: ClassVar[str] = "experiments"
    version: ClassVar[int] = 5
    kind: ClassVar[Kind] = EXPERIMENTS
    owners: ClassVar[Mapping[sa.Table, sa.Column[Any]]] = {
        experiments: experiments.c.id,
        trials: trials.c.experiment_id,
    }
    compared: ClassVar[Sequence[str]] = ("state", "annotations_mtime_ns")

    def has_changed(self, folder: Path, row: Row) -> bool:
        """Tell whether an experiment got tags or notes, or its driver started or died without writing a fact."""
        experiment = ExperimentFolder(folder)
        if row["annotations_mtime_ns"] != _annotated_at(experiment):
            return True
        return row["state"] in _OPEN and is_held(experiment) != (row["state"] == ExperimentState.RUNNING)

    def begin(self, connection: sa.Connection, folder: Path, row: Row | None, key: str) -> Reading:
        """Begin to read the journal of an experiment from where its row says that reading ended."""
        return _ExperimentReading(connection, ExperimentFolder(folder), row, key)


TABLES: Final = ExperimentTables()


def _annotated_at(folder: ExperimentFolder) -> int:
    try:
        return folder.annotations.stat().st_mtime_ns
    except OSError:
        return 0


def _annotations(folder: ExperimentFolder) -> Annotations:
    try:
        return read_annotations(folder)
    except StoreError:
        return Annotations()  # unreadable notes must not hide the experiment


class _ExperimentReading(Reading):
    """From a row (or nothing) to a record, and which trials it touched."""

    def __init__(self, connection: sa.Connection, folder: ExperimentFolder, row: Row | None, key: str) -> None:
        self.folder = folder
        self.key = key
        self.start: int = row["read_bytes"] if row is not None else 0
        self.reader = JournalReader(folder.journal, EXPERIMENT_FACTS, self.start)
        self.before: dict[int, Row] = {}
        self.record: ExperimentRecord | None = None
        self.touched: set[int] = set()
        self.annotated_at = _annotated_at(folder)  # looked at before they are read
        if row is not None:
            query = sa.select(trials).where(trials.c.project == key, trials.c.experiment_id == folder.id)
            self.before = {one["number"]: one for one in connection.execute(query).mappings()}
            self.record = restore_record(row, list(self.before.values()))

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
        self._touch(facts)
        for fact in facts:
            record.apply(fact)
        if self.reader.offset - self.start < BYTES_AT_ONCE:
            self._touch(settle(record, self.reader, self.folder))
            self.is_complete = True

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
        _replace_trials(connection, self.key, self.folder.id, changed, self.before)

    def _touch(self, facts: Sequence[AnyFact]) -> None:
        self.touched.update(getattr(fact, "trial", -1) for fact in facts)


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
    connection.execute(trials.insert(), rows)


def _unreadable(folder: ExperimentFolder) -> ExperimentRecord:
    changed_at = folder.journal.stat().st_mtime
    record = ExperimentRecord(ExperimentStarted(at=changed_at, id=folder.id, asked=Asked(name="?")))
    record.state = ExperimentState.LOST
    return record
