"""Lists of runs that do not wait: of ten thousand runs only the first line is read, and that once."""

from __future__ import annotations

import subprocess
import threading
import time
from typing import Final, NamedTuple

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.times import on_calendar
from cargobike.pipelines.facts import RUN_FACTS, RunStarted, RunState, StepState
from cargobike.pipelines.kind import RUNS
from cargobike.pipelines.pages.answers import PipelineLine, RunLine, RunPage
from cargobike.pipelines.record import RunFolder, RunRecord, folder_of, read_run, state_of
from cargobike.store.files.mirror import refresh
from cargobike.store.journal.journal import read_header
from cargobike.store.journal.remembering import thing_names

_MOST_KEPT: Final = 2000


class _Seen(NamedTuple):
    mark: tuple[int, int]
    line: RunLine


class Runs:
    """The runs of a project as lists show them; what has not changed since it was read is not read again.

    Args:
        project: The project.
    """

    def __init__(self, project: ProjectFolder) -> None:
        self._project = project
        self._lock = threading.Lock()
        self._started: dict[str, RunStarted | None] = {}
        self._lines: dict[str, _Seen] = {}
        self._drivers: list[subprocess.Popen[bytes]] = []

    def page(self, pipeline: str, words: str, offset: int, limit: int) -> RunPage:
        """Return a part of the runs, the newest first.

        Args:
            pipeline: Only runs of this one; all if empty.
            words: Only runs in whose id or pipeline this occurs.
            offset: How many to skip.
            limit: How many to return at most.
        """
        runs = self._all()
        wanted = words.strip().lower()
        fitting = [
            started
            for started in runs
            if (not pipeline or started.pipeline == pipeline) and wanted in f"{started.id} {started.pipeline}".lower()
        ]
        lines = [self._line(one, folder_of(self._project, one.id)) for one in fitting[offset : offset + limit]]
        return RunPage(lines, _pipelines(runs), len(fitting), offset, limit)

    def started(self) -> list[RunStarted]:
        """Return the first lines of all runs, the newest first."""
        return self._all()

    def warm(self) -> None:
        """Read what the first list needs."""
        self._all()

    def keep(self, process: subprocess.Popen[bytes]) -> None:
        """Keep a driver that was started here, so that it is reaped; it goes on when this server ends."""
        with self._lock:
            self._drivers = [driver for driver in self._drivers if driver.poll() is None]
            self._drivers.append(process)

    def close(self) -> None:
        """Leave drivers that still run to themselves: no warning that they do."""
        for driver in self._drivers:
            if driver.poll() is None:
                driver.returncode = 0

    def _all(self) -> list[RunStarted]:
        refresh(self._project)
        with self._lock:
            runs = []
            for name in thing_names(RUNS, self._project.root):
                started = self._started.get(name) or self._read_first(name)
                if started is not None:
                    runs.append(started)
        runs.sort(key=lambda started: (started.at, started.id), reverse=True)
        return runs

    def _read_first(self, name: str) -> RunStarted | None:
        folder = folder_of(self._project, name)
        if not folder.journal.is_file():
            return None
        try:
            started = read_header(folder.journal, RUN_FACTS)
        except CargobikeError:
            started = None
        if started is None:  # the driver may be about to write its first line: this is not remembered
            return RunStarted(at=_changed_at(folder), id=name, pipeline="")
        self._started[name] = started
        return started

    def _line(self, started: RunStarted, folder: RunFolder) -> RunLine:
        try:
            status = folder.journal.stat()
            mark = status.st_size, status.st_mtime_ns
            seen = self._lines.get(folder.id)
            if seen is not None and seen.mark == mark and seen.line.state != RunState.RUNNING:
                return seen.line
            line = line_of(settled(read_run(folder)))
        except (CargobikeError, OSError) as error:
            words = " ".join(str(error).split())[:200]
            return RunLine(started.id, started.pipeline, "unreadable", iso(started.at), 0.0, {}, "", words)
        if len(self._lines) >= _MOST_KEPT:
            self._lines.clear()
        self._lines[folder.id] = _Seen(mark, line)
        return line


def settled(record: RunRecord) -> RunRecord:
    """Return a run whose steps do not look as if they ran, if its driver is gone without a word."""
    if record.state is RunState.RUNNING and state_of(record) is not RunState.RUNNING:
        for step in record.steps.values():
            if step.state in (StepState.RUNNING, StepState.WAITING):
                step.state = StepState.INTERRUPTED
    return record


def line_of(record: RunRecord) -> RunLine:
    """Return a run as lists show it; one that runs takes until now."""
    state = state_of(record)
    return RunLine(
        run=record.id,
        pipeline=record.pipeline,
        state=state.value,
        started_at=iso(record.started.at),
        seconds=max(0.0, time.time() - record.started.at) if state is RunState.RUNNING else record.seconds,
        steps={state.value: count for state, count in record.counted().items()},
        cause=cause_in_words(record.started.cause),
        error=last_line(record.error),
    )


def cause_in_words(cause: dict[str, object]) -> str:
    """Say what set off a run; nothing if a person did."""
    if not cause:
        return ""
    subject = cause.get("text") or cause.get("subject") or cause.get("group") or cause.get("table") or ""
    parts = [str(part) for part in (cause.get("schedule"), cause.get("kind"), subject) if part]
    return " · ".join(dict.fromkeys(parts))[:200] or "a program"


def last_line(error: str) -> str:
    """Return the line of a traceback that says what went wrong."""
    lines = [line for line in error.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""


def iso(at: float) -> str:
    """Return a time as programs write it."""
    return on_calendar(at).isoformat(timespec="milliseconds")


def _changed_at(folder: RunFolder) -> float:
    try:
        return folder.journal.stat().st_mtime
    except OSError:
        return 0.0


def _pipelines(runs: list[RunStarted]) -> list[PipelineLine]:
    lines: dict[str, PipelineLine] = {}
    for started in runs:  # the newest first
        if not started.pipeline:
            continue
        line = lines.get(started.pipeline)
        if line is None:
            line = lines[started.pipeline] = PipelineLine(started.pipeline, 0, started.id, iso(started.at))
        line.runs += 1
    return sorted(lines.values(), key=lambda line: line.pipeline)
