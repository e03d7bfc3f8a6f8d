"""How the SQL index catches up with journals: what changed, and reading on from where it stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from cargobike.core.asked import Asked
from cargobike.core.errors import StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact, ExperimentStarted
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import ExperimentState, Trial
from cargobike.experiments.index.tables import (
    annotation_values,
    experiment_values,
    experiments,
    restore_record,
    trial_values,
    trials,
)
from cargobike.experiments.reading import settle
from cargobike.store.files.locking import is_held
from cargobike.store.history.annotations import Annotations, read_annotations
from cargobike.store.journal.journal import JournalReader

BYTES_AT_ONCE: Final = 16 << 20
_TAIL_BYTES: Final = 19  # `,"crc":"01234567"}` and the newline

_OPEN: Final = {ExperimentState.RUNNING.value, ExperimentState.LOST.value}

Row = Mapping[Any, Any]


def compare(connection: sa.Connection, project: ProjectFolder, key: str) -> tuple[list[ExperimentFolder], list[str]]:
    """Find folders whose journals differ from what was read, and ids of rows whose folders are gone."""
    columns = ("id", "state", "journal_bytes", "journal_mtime_ns", "annotations_mtime_ns")
    query = sa.select(*(experiments.c[name] for name in columns)).where(experiments.c.project == key)
    rows = connection.execute(query).mappings()
    known = {row["id"]: row for row in rows}
    changed, found = [], set()
    for folder in experiment_folders(project):
        try:
            stat = folder.journal.stat()
        except OSError:
            continue
        found.add(folder.id)
        if _has_changed(folder, stat, known.get(folder.id)):
            changed.append(folder)
    return changed, [one for one in known if one not in found]


def forget(connection: sa.Connection, key: str, ids: Sequence[str]) -> None:
    """Delete everything about some experiments."""
    for one in ids:
        connection.execute(trials.delete().where(trials.c.project == key, trials.c.experiment_id == one))
        connection.execute(experiments.delete().where(experiments.c.project == key, experiments.c.id == one))


def catch_up(connection: sa.Connection, folder: ExperimentFolder, key: str) -> tuple[int, bool]:
    """Read on in one journal and update its rows; returns the bytes read, and whether that was all.

    `key` says which project the folder belongs to, where one database serves several.
    """
    mine = sa.and_(experiments.c.project == key, experiments.c.id == folder.id)
    row = connection.execute(sa.select(experiments).where(mine)).mappings().first()
    try:
        if row is not None and (row["problem"] or not _continues(folder.journal, row)):
            forget(connection, key, [folder.id])
            row = None
        stat = folder.journal.stat()
    except OSError:
        return 0, True  # deleted meanwhile: the next sync forgets it
    annotated_at = _annotated_at(folder)
    reading = _Reading(connection, folder, row, key)
    problem = ""
    try:
        reading.read_on()
    except StoreError as error:
        problem = str(error)
    record = reading.record
    if record is None:
        if not problem:
            return 0, True  # its driver has not written the first line yet
        record = _unreadable(folder, stat.st_mtime)
    values = {
        **experiment_values(record),
        **annotation_values(_annotations(folder)),
        "annotations_mtime_ns": annotated_at,
        "project": key,
        "id": folder.id,
        "problem": problem,
        "read_bytes": reading.reader.offset,
        "read_tail": _tail(folder.journal, reading.reader.offset),
        "journal_bytes": stat.st_size if reading.is_complete or problem else -1,
        "journal_mtime_ns": stat.st_mtime_ns,
    }
    connection.execute(experiments.delete().where(mine))
    connection.execute(experiments.insert().values(values))
    touched = sorted(reading.touched & record.trials.keys())
    _replace_trials(connection, key, folder.id, [record.trials[one] for one in touched], reading.before)
    return reading.bytes_read, reading.is_complete or bool(problem)


def experiment_folders(project: ProjectFolder) -> Iterator[ExperimentFolder]:
    """Yield the folders of all experiments; what begins with a dot is being made or removed."""
    try:
        names = sorted(entry.name for entry in project.experiments.iterdir() if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (project.experiment(name) for name in names)


def _has_changed(folder: ExperimentFolder, stat: os.stat_result, row: Row | None) -> bool:
    if row is None or (stat.st_size, stat.st_mtime_ns) != (row["journal_bytes"], row["journal_mtime_ns"]):
        return True
    if row["annotations_mtime_ns"] != _annotated_at(folder):
        return True
    return row["state"] in _OPEN and is_held(folder) != (row["state"] == ExperimentState.RUNNING)


def _annotated_at(folder: ExperimentFolder) -> int:
    try:
        return folder.annotations.stat().st_mtime_ns
    except OSError:
        return 0


def _annotations(folder: ExperimentFolder) -> Annotations:
    try:
        return read_annotations(folder)
    except StoreError:
        return Annotations()  # not worth hiding an experiment for


class _Reading:
    """One step of reading a journal: from a row (or nothing) to a record, and which trials it touched."""

    def __init__(self, connection: sa.Connection, folder: ExperimentFolder, row: Row | None, key: str) -> None:
        self.folder = folder
        self.start: int = row["read_bytes"] if row is not None else 0
        self.reader = JournalReader(folder.journal, EXPERIMENT_FACTS, self.start)
        self.before: dict[int, Row] = {}
        self.record: ExperimentRecord | None = None
        self.touched: set[int] = set()
        self.is_complete = False
        if row is not None:
            query = sa.select(trials).where(trials.c.project == key, trials.c.experiment_id == folder.id)
            self.before = {one["number"]: one for one in connection.execute(query).mappings()}
            self.record = restore_record(row, list(self.before.values()))

    @property
    def bytes_read(self) -> int:
        return self.reader.offset - self.start

    def read_on(self) -> None:
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
        if self.bytes_read < BYTES_AT_ONCE:
            self._touch(settle(record, self.reader, self.folder))
            self.is_complete = True

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


def _continues(journal: Path, row: Row) -> bool:
    """Tell whether a journal still begins with what was read: not cut, not replaced by another."""
    return bool(_tail(journal, row["read_bytes"]) == row["read_tail"])


def _tail(journal: Path, offset: int) -> str:
    with journal.open("rb") as file:
        file.seek(max(0, offset - _TAIL_BYTES))
        return file.read(min(offset, _TAIL_BYTES)).decode("latin-1")


def _unreadable(folder: ExperimentFolder, changed_at: float) -> ExperimentRecord:
    record = ExperimentRecord(ExperimentStarted(at=changed_at, id=folder.id, asked=Asked(name="?")))
    record.state = ExperimentState.LOST
    return record
