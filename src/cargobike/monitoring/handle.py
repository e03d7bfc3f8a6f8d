"""The handle of a monitor: look, acknowledge, report, stop; from any process that sees the project."""

from __future__ import annotations

import getpass
import os
import shutil
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from cargobike.core.errors import InvalidInputError, NotFoundError, WaitError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.steps import Kept, own_step
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.monitoring.facts import ErrorMeasured, Watched, WindowJudged
from cargobike.monitoring.judgement import Judgement
from cargobike.monitoring.kind import MONITORS
from cargobike.monitoring.labelling.files import add_labels
from cargobike.monitoring.notes import Acknowledged, add_note
from cargobike.monitoring.record import Alarm, MonitorFolder, MonitorRecord, find_record, folder_of
from cargobike.monitoring.rows.reading import opened, tables_of
from cargobike.monitoring.running.launching import END_S, launch, stop
from cargobike.monitoring.showing.report import report_of
from cargobike.store.files.locking import holder, is_held
from cargobike.store.files.storages import storage_of

_LOOK_S: Final = 0.1


class MonitorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a monitor is.

    Attributes:
        name: Its name.
        state: `watching`, `stopped`, or `lost` if its process was killed.
        by: The process that watches.
        watched: What was asked for.
        windows: How many windows were closed.
        rows: How many rows these had.
        unusual: Whether the last window that was judged is unusual.
        open_alarms: Alarms that need a look.
        is_drifting: Whether an alarm has not recovered.
        trouble: Why the log cannot be read now; empty if it can.
        seen_at: When something was written last.
    """

    name: str
    state: str
    by: str
    watched: Watched
    windows: int
    rows: int
    unusual: bool
    open_alarms: tuple[str, ...]
    is_drifting: bool
    trouble: str
    seen_at: float


class Monitor:
    """A monitor; returned by `monitoring.watch`, `monitoring.monitor` and `monitoring.list_monitors`.

    As a context manager it stops watching at its end.

    Attributes:
        name: Its name in the project.
    """

    def __init__(self, name: str, project: ProjectFolder) -> None:
        self.name = name
        self._project = project

    @property
    def folder(self) -> MonitorFolder:
        """Its folder in the project."""
        return folder_of(self._project, self.name)

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps it as."""
        return Kept("monitor", self.name)

    def record(self) -> MonitorRecord:
        """Return everything that its journal says.

        Raises:
            NotFoundError: If it was removed.
        """
        return find_record(self._project, self.name)

    def status(self) -> MonitorStatus:
        """Return how it is."""
        record = self.record()
        is_watching = is_held(self.folder)
        judged = [window for window in record.windows if not window.reason]
        return MonitorStatus(
            name=self.name,
            state="watching" if is_watching else "stopped" if record.ended or not record.pid else "lost",
            by=holder(self.folder) if is_watching else "",
            watched=record.watched,
            windows=len(record.windows),
            rows=sum(window.rows for window in record.windows),
            unusual=bool(judged) and judged[-1].unusual,
            open_alarms=tuple(alarm.id for alarm in record.open_alarms),
            is_drifting=record.is_drifting,
            trouble=record.trouble,
            seen_at=record.seen_at,
        )

    def windows(self) -> list[WindowJudged]:
        """Return the windows that were closed, the oldest first."""
        return self.record().windows

    def errors(self) -> list[ErrorMeasured]:
        """Return the errors that were measured where labels came, the oldest first."""
        return self.record().errors

    def alarms(self, *, only_open: bool = False) -> list[Alarm]:
        """Return alarms, the oldest first; only those that need a look if asked."""
        record = self.record()
        return record.open_alarms if only_open else record.alarms

    def judgement(self, window: int) -> Judgement:
        """Return everything that was said about a window.

        Raises:
            NotFoundError: If it was not judged, or is so old that only its fact is kept.
        """
        try:
            return msgspec.json.decode(self.folder.judgement(window).read_bytes(), type=Judgement)
        except (OSError, *UNDECODABLE) as error:
            raise NotFoundError(
                f"{self.name} keeps no judgement of window {window}: there is none, it had too few rows, or it is old.",
                wanted=str(window),
            ) from error

    def acknowledge(self, alarm: str = "", *, note: str = "", by: str = "") -> list[str]:
        """Say that a person has seen an alarm, or all that are open; return which.

        Args:
            alarm: Its id; all open ones if not given.
            note: What there is to say about it.
            by: Who has seen it; by default the user of this process.

        Raises:
            NotFoundError: If there is no such alarm.
        """
        record = self.record()
        chosen = [record.alarm(alarm)] if alarm else record.open_alarms
        for one in chosen:
            add_note(
                self._project,
                self.name,
                Acknowledged(at=time.time(), alarm=one.id, by=by or getpass.getuser(), note=note),
            )
        return [one.id for one in chosen]

    @own_step("monitor.label")
    def label(self, table: Any) -> int:
        """Bring labels; see `monitoring.labels`."""
        watched = self.record().watched
        with opened(table, "labels") as source:
            rows = pa.concat_tables(tables_of(source, list(source.schema.names)), promote_options="permissive")
        return add_labels(self._project, self.name, rows, watched.label)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write what happened over time as one HTML file; return where."""
        record = self.record()
        judged = [window.number for window in record.windows if not window.reason]
        try:
            last = self.judgement(judged[-1]) if judged else None
        except NotFoundError:
            last = None
        target = Path(path)
        target.write_text(report_of(record, last, time.time()), encoding="utf-8")
        return target

    def start(self, *, detach: bool = False) -> Monitor:
        """Watch again, after it was stopped or killed."""
        self.record()
        launch(self.folder, detach=detach)
        return self

    def stop(self, timeout_s: float = END_S) -> bool:
        """End the process that watches; returns whether there was one. `start` goes on where it was."""
        return stop(self.folder, timeout_s)

    def wait(self, timeout_s: float = 3600.0, *, windows: int = 0, alarms: int = 1) -> MonitorRecord:
        """Wait until there are so many windows and alarms.

        Raises:
            WaitError: If that takes longer, or the watcher has ended.
        """
        give_up_at = time.monotonic() + timeout_s
        while True:
            record = self.record()
            if len(record.windows) >= windows and len(record.alarms) >= alarms:
                return record
            wanted = f"{windows} windows and {alarms} alarms" if windows else f"{alarms} alarms"
            there = f"it has {len(record.windows)} windows and {len(record.alarms)} alarms"
            if not is_held(self.folder):
                raise WaitError(f"{self.name} is not watched any more, and {there}; {wanted} were waited for.")
            if time.monotonic() > give_up_at:
                raise WaitError(f"{self.name} has not got {wanted} within {timeout_s:g} s; {there}.")
            time.sleep(_LOOK_S)

    def remove(self) -> None:
        """Delete the monitor with all that it knows.

        Raises:
            InvalidInputError: If it is being watched.
        """
        if is_held(self.folder):
            raise InvalidInputError(f"{self.name} is being watched by {holder(self.folder)}; stop it first.")
        storage_of(self._project).delete(MONITORS.place(self.name), MONITORS.head(self.name))
        shutil.rmtree(self.folder.root, ignore_errors=True)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        status = self.status()
        alarms = f", alarms {', '.join(status.open_alarms)}" if status.open_alarms else ""
        return f"Monitor {self.name} of {status.watched.subject}: {status.state}, {status.windows} windows{alarms}"
