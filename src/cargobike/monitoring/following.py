"""What journals of monitors say, kept while a process runs: a page reads only what was written since the last one.

A list of ten thousand monitors costs one look at each journal; what has not changed is not opened.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Final

import msgspec

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.monitoring.facts import MONITOR_FACTS, AnyMonitorFact
from cargobike.monitoring.kind import MONITORS
from cargobike.monitoring.notes import read_notes
from cargobike.monitoring.record import MonitorRecord, find_record, fold, folder_of
from cargobike.store.journal.journal import JournalReader
from cargobike.store.journal.remembering import Mark, journals_of, mark_of


class _Followed:
    """One journal, and what it has said."""

    def __init__(self, reader: JournalReader[AnyMonitorFact], record: MonitorRecord, mark: Mark) -> None:
        self.reader, self.record, self.mark = reader, record, mark


class Records:
    """The monitors of projects; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: dict[str, _Followed] = {}

    def all(self, project: ProjectFolder) -> Iterator[tuple[str, MonitorRecord | StoreError]]:
        """Yield what is known of all monitors, by name, or why one cannot be read.

        Notes are added only where they change something that lists show: to records with alarms.
        """
        for name, path, mark in journals_of(MONITORS, project.root):
            try:
                record = self._read(name, path, mark)
                if record is not None:
                    yield name, self._noted(project, record) if record.alarms else record
            except StoreError as error:
                yield name, error

    def find(self, project: ProjectFolder, name: str) -> MonitorRecord:
        """Return what is known of a monitor.

        Raises:
            NotFoundError: If there is no such monitor.
        """
        if not MONITORS.id.fullmatch(name):
            raise NotFoundError(f"There is no monitor {name!r} in this project.", wanted=name)
        path = os.fspath(folder_of(project, name).journal)
        mark = mark_of(path)
        record = None if mark is None else self._read(name, path, mark)
        # The other way says which names are near.
        return find_record(project, name) if record is None else self._noted(project, record)

    def _read(self, name: str, path: str, mark: Mark) -> MonitorRecord | None:
        with self._lock:
            followed = self._followed.get(path)
            if followed is None or followed.mark.inode != mark.inode:
                reader = JournalReader(path, MONITOR_FACTS, of=name)
                record = fold(reader.read_new())
                if record is None:
                    return None
                followed = self._followed[path] = _Followed(reader, record, mark)
            elif followed.mark != mark:
                for fact in followed.reader.read_new():
                    followed.record.apply(fact)
                followed.mark = mark
            # Alarms are replaced in their list; other facts are only added, at the end.
            return msgspec.structs.replace(followed.record, alarms=list(followed.record.alarms), compared=[])

    def _noted(self, project: ProjectFolder, record: MonitorRecord) -> MonitorRecord:
        # Notes are few, and change what alarms say: they are read anew, onto a copy.
        for note in read_notes(project, record.name):
            record.add(note)
        return record


RECORDS: Final = Records()
"""Those of this process: pages, search and lineage read each journal once."""
