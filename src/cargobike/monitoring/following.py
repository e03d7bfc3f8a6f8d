"""What journals of monitors say, kept while a server runs: a page reads only what was written since the last one."""

from __future__ import annotations

import threading

import msgspec

from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.monitoring.facts import MONITOR_FACTS, AnyMonitorFact
from cargobike.monitoring.kind import MONITORS
from cargobike.monitoring.notes import read_notes
from cargobike.monitoring.record import MonitorRecord, all_folders, find_record, fold, folder_of
from cargobike.store.journal.journal import JournalReader


class _Followed:
    """One journal, and what it has said."""

    def __init__(self, reader: JournalReader[AnyMonitorFact], record: MonitorRecord, began: int) -> None:
        self.reader, self.record, self.began = reader, record, began


class Records:
    """The monitors of projects; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: dict[str, _Followed] = {}

    def names(self, project: ProjectFolder) -> list[str]:
        """Return the names of all monitors, sorted."""
        return sorted(folder.id for folder in all_folders(project))

    def find(self, project: ProjectFolder, name: str) -> MonitorRecord:
        """Return what is known of a monitor.

        Raises:
            NotFoundError: If there is no such monitor.
        """
        if not MONITORS.id.fullmatch(name):
            raise NotFoundError(f"There is no monitor {name!r} in this project.", wanted=name)
        folder = folder_of(project, name)
        with self._lock:
            followed = self._followed.get(str(folder.root))
            try:
                inode = folder.journal.stat().st_ino
            except OSError:
                return find_record(project, name)  # says which names are near
            if followed is None or followed.began != inode:
                reader = JournalReader(folder.journal, MONITOR_FACTS, of=name)
                record = fold(reader.read_new())
                if record is None:
                    return find_record(project, name)
                followed = self._followed[str(folder.root)] = _Followed(reader, record, inode)
            else:
                for fact in followed.reader.read_new():
                    followed.record.apply(fact)
            # Notes are few, and change what alarms say: they are read anew, onto a copy.
            copied = msgspec.structs.replace(followed.record, alarms=list(followed.record.alarms), compared=[])
        for note in read_notes(project, name):
            copied.add(note)
        return copied
