"""What the journal of a monitor says, with what people said about it: folded once for every reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from cargobike.core.errors import NotFoundError, StoreError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder, ThingFolder
from cargobike.monitoring.facts import (
    MONITOR_FACTS,
    AlarmEnded,
    AlarmRaised,
    AnyMonitorFact,
    ErrorMeasured,
    HookTold,
    MonitorChanged,
    MonitorStarted,
    Trouble,
    Watched,
    WatcherEnded,
    WatcherStarted,
    WindowJudged,
)
from cargobike.monitoring.kind import MONITORS
from cargobike.monitoring.notes import Acknowledged, Compared, Note, read_notes
from cargobike.store.files.things import folders_of
from cargobike.store.journal.journal import JournalReader

AlarmState = Literal["open", "acknowledged", "recovered"]


class MonitorFolder(ThingFolder, frozen=True):
    """The folder of one monitor."""

    @property
    def reference(self) -> Path:
        """What is usual, as `Reference.save` writes it."""
        return self.root / "reference"

    @property
    def checkpoint(self) -> Path:
        """Where the watcher goes on: position, open windows, and facts that may not be in the journal yet."""
        return self.root / "states" / "checkpoint"

    @property
    def log(self) -> Path:
        """What the watcher prints."""
        return self.root / "watcher.log"

    @property
    def functions(self) -> Path:
        """Metrics that a user wrote, pickled."""
        return self.root / "functions"

    def judgement(self, window: int) -> Path:
        """Return where everything is that was said about a window."""
        return self.root / "windows" / f"{window}.json"


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """An alarm, and what became of it.

    Attributes:
        raised: The alarm as it was raised.
        ended_at: When what is watched was as usual again; 0 if it is not.
        acknowledged: Who has seen it, when and with which note; `None` if it was not acknowledged.
        told: Which hooks were told.
    """

    raised: AlarmRaised
    ended_at: float = 0.0
    acknowledged: Acknowledged | None = None
    told: tuple[HookTold, ...] = ()

    @property
    def id(self) -> str:
        """Its name in the monitor."""
        return self.raised.id

    @property
    def state(self) -> AlarmState:
        """Whether it needs a look."""
        if self.ended_at:
            return "recovered"
        return "acknowledged" if self.acknowledged else "open"


class MonitorRecord(msgspec.Struct):
    """A monitor as its journal tells it.

    Attributes:
        name: Its name in the project.
        watched: What was asked for last.
        started_at: When it was first asked for.
        windows: The windows that were closed, the oldest first.
        errors: What was measured where labels came.
        alarms: All alarms, the oldest first.
        compared: Comparisons of champions with challengers.
        trouble: Why the log cannot be read now; empty if it can.
        pid: The process that watches, or watched last.
        host: Its host.
        ended: Why it ended; empty if it runs, or was killed.
        seen_at: When the last fact was written.
    """

    name: str
    watched: Watched
    started_at: float = 0.0
    windows: list[WindowJudged] = msgspec.field(default_factory=list)
    errors: list[ErrorMeasured] = msgspec.field(default_factory=list)
    alarms: list[Alarm] = msgspec.field(default_factory=list)
    compared: list[Compared] = msgspec.field(default_factory=list)
    trouble: str = ""
    pid: int = 0
    host: str = ""
    ended: str = ""
    seen_at: float = 0.0

    @property
    def open_alarms(self) -> list[Alarm]:
        """Alarms that need a look: neither recovered nor acknowledged."""
        return [alarm for alarm in self.alarms if alarm.state == "open"]

    @property
    def is_drifting(self) -> bool:
        """Whether an alarm has not recovered."""
        return any(not alarm.ended_at for alarm in self.alarms)

    def alarm(self, alarm_id: str) -> Alarm:
        """Return an alarm.

        Raises:
            NotFoundError: If there is no such alarm.
        """
        for alarm in self.alarms:
            if alarm.id == alarm_id:
                return alarm
        names = [alarm.id for alarm in self.alarms]
        raise NotFoundError(
            f"{self.name} has no alarm {alarm_id!r}; it has {', '.join(names) or 'raised none'}.",
            wanted=alarm_id,
            nearest=nearest_names(alarm_id, names),
        )

    def apply(self, fact: AnyMonitorFact) -> None:
        """Add what a fact says."""
        self.seen_at = max(self.seen_at, fact.at)
        match fact:
            case MonitorStarted() | MonitorChanged():
                self.watched = fact.watched
            case WatcherStarted():
                self.pid, self.host, self.ended = fact.pid, fact.host, ""
            case WatcherEnded():
                self.ended = fact.reason or "stopped"
            case Trouble():
                self.trouble = fact.text
            case WindowJudged():
                self.windows.append(fact)
            case ErrorMeasured():
                self.errors.append(fact)
            case AlarmRaised():
                self.alarms.append(Alarm(raised=fact))
            case AlarmEnded():
                self._change(fact.id, ended_at=fact.at)
            case HookTold():
                self._change(fact.alarm, told=fact)

    def add(self, note: Note) -> None:
        """Add what a person said, or another process found out."""
        if isinstance(note, Acknowledged):
            self._change(note.alarm, acknowledged=note)
        else:
            self.compared.append(note)

    def _change(
        self,
        alarm_id: str,
        *,
        ended_at: float | None = None,
        acknowledged: Acknowledged | None = None,
        told: HookTold | None = None,
    ) -> None:
        for place, alarm in enumerate(self.alarms):
            if alarm.id == alarm_id:
                self.alarms[place] = Alarm(
                    raised=alarm.raised,
                    ended_at=alarm.ended_at if ended_at is None else ended_at,
                    acknowledged=acknowledged or alarm.acknowledged,
                    told=(*alarm.told, told) if told else alarm.told,
                )


def fold(facts: Iterable[AnyMonitorFact], notes: Iterable[Note] = ()) -> MonitorRecord | None:
    """Return what facts and notes say together; `None` if there are no facts."""
    record: MonitorRecord | None = None
    for fact in facts:
        if record is None:
            if not isinstance(fact, MonitorStarted):
                raise StoreError(f"The journal of a monitor begins with {type(fact).__name__}; is it one?")
            record = MonitorRecord(fact.id, fact.watched, fact.at)
        record.apply(fact)
    for note in notes:
        if record is not None:
            record.add(note)
    return record


def folder_of(project: ProjectFolder, name: str) -> MonitorFolder:
    """Return the folder of a monitor."""
    return MonitorFolder(project.root / MONITORS.folder / name)


def read_record(folder: MonitorFolder) -> MonitorRecord | None:
    """Return what is known of a monitor; `None` if it has no journal."""
    if not folder.journal.exists():
        return None
    facts = JournalReader(folder.journal, MONITOR_FACTS, of=folder.id).read_new()
    return fold(facts, read_notes(folder.project, folder.id))


def find_record(project: ProjectFolder, name: str) -> MonitorRecord:
    """Return what is known of a monitor.

    Raises:
        NotFoundError: If there is no such monitor; names the nearest.
    """
    record = read_record(folder_of(project, name)) if MONITORS.id.fullmatch(name) else None
    if record is None:
        names = [folder.id for folder in all_folders(project)]
        raise NotFoundError(
            f"There is no monitor {name!r} in {project.root}.{nearest(name, names)} "
            "monitoring.watch(...) or `cargobike monitor start` makes one.",
            wanted=name,
            nearest=nearest_names(name, names),
        )
    return record


def all_folders(project: ProjectFolder) -> Iterator[MonitorFolder]:
    """Yield the folders of all monitors of a project, by name."""
    for root in folders_of(MONITORS, project.root):
        folder = MonitorFolder(root)
        if folder.journal.exists():
            yield folder
