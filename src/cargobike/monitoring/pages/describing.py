"""Monitors as the dashboard shows them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.times import on_calendar
from cargobike.monitoring.facts import WindowJudged
from cargobike.monitoring.following import Records
from cargobike.monitoring.handle import Monitor
from cargobike.monitoring.judgement import Judgement
from cargobike.monitoring.pages import drawing
from cargobike.monitoring.pages.answers import (
    AlarmAnswer,
    ErrorAnswer,
    ErrorPage,
    MonitorDetails,
    MonitorLine,
    MonitorPage,
    MovedAnswer,
    WindowAnswer,
    WindowPage,
)
from cargobike.monitoring.record import Alarm, MonitorRecord, folder_of
from cargobike.monitoring.records import Comparison
from cargobike.monitoring.showing.text import before_and_after
from cargobike.store.files.locking import holder, is_held

Known = tuple[str, MonitorRecord | StoreError]
"""The name of a monitor, and what its journal says, or why it cannot be read."""

_ALARMS = 100
_ERRORS = 1000
_COLUMNS = 24


def listed(project: ProjectFolder, known: Sequence[Known], words: str, offset: int, limit: int) -> MonitorPage:
    """Return a part of the monitors in whose name or subject a text occurs, those with open alarms first."""
    wanted = words.strip().lower()
    fitting = [(name, record) for name, record in known if wanted in _said(name, record)]
    fitting.sort(key=lambda one: (-num_open_alarms(one[1]), one[0]))
    shown = [
        _unreadable(name, record) if isinstance(record, StoreError) else _line(project, record)
        for name, record in fitting[offset : offset + limit]
    ]
    return MonitorPage(shown, len(fitting), offset, limit)


def details(records: Records, project: ProjectFolder, name: str, *, may_change: bool) -> MonitorDetails:
    """Return one monitor."""
    record = records.find(project, name)
    line = _line(project, record)
    last = record.windows[-1] if record.windows else None
    lasted = last.last_at - last.first_at if last else 0.0
    asked = msgspec.to_builtins(record.watched)
    asked["hooks"] = [hook for hook, value in asked["hooks"].items() if value]  # addresses may hold secrets
    return MonitorDetails(
        monitor=line,
        watched=asked,
        by=holder(folder_of(project, name)) if line.state == "watching" else "",
        started_at=_moment(record.started_at),
        rows=sum(window.rows for window in record.windows),
        late=sum(window.late for window in record.windows),
        dropped=sum(window.dropped for window in record.windows),
        per_s=last.rows / lasted if last and lasted > 0 else None,
        lag_s=max(0.0, time.time() - last.last_at) if last else None,
        alarms=[_alarm(alarm) for alarm in reversed(record.alarms[-_ALARMS:])],
        may_change=may_change,
    )


def windows(records: Records, project: ProjectFolder, name: str, offset: int, limit: int) -> WindowPage:
    """Return a part of the windows, the oldest first."""
    found = records.find(project, name).windows
    return WindowPage([_window(window) for window in found[offset : offset + limit]], len(found), offset, limit)


def errors(records: Records, project: ProjectFolder, name: str) -> ErrorPage:
    """Return errors over time."""
    found = records.find(project, name).errors
    lines = [
        ErrorAnswer(one.number, _moment(one.first_at), _moment(one.last_at), one.rows, dict(one.metrics))
        for one in found[-_ERRORS:]
    ]
    return ErrorPage(lines, len(found))


class Picture(NamedTuple):
    """A figure with its title."""

    title: str
    svg: str


class Column(NamedTuple):
    """A feature now and in the reference."""

    name: str
    svg: str
    words: str
    psi: float | None
    chance: float


class Pictures(NamedTuple):
    """What the page of a monitor draws."""

    bands: list[drawing.Band]
    features: int
    span: str
    lines: list[Picture]
    columns: list[Column]
    window: int
    unjudged: int


def pictures(records: Records, project: ProjectFolder, name: str) -> Pictures:
    """Return what is drawn of a monitor."""
    record = records.find(project, name)
    drawn, features = drawing.bands(record.windows)
    judged = [window for window in record.windows if not window.reason]
    judgement, number = _last_judgement(Monitor(name, project), judged)
    return Pictures(
        bands=drawn,
        features=features,
        span=f"{_words(judged[0].first_at)} to {_words(judged[-1].last_at)}" if judged else "",
        lines=_lines(record),
        columns=_columns(judgement) if judgement else [],
        window=number,
        unjudged=len(record.windows) - len(judged),
    )


def acknowledge(records: Records, project: ProjectFolder, name: str, alarm: str, note: str) -> AlarmAnswer:
    """Say that an alarm was seen; return it as it is now.

    Raises:
        NotFoundError: If there is no such monitor or alarm.
    """
    records.find(project, name)
    Monitor(name, project).acknowledge(alarm, note=note)
    return _alarm(records.find(project, name).alarm(alarm))


def num_open_alarms(record: MonitorRecord | StoreError) -> int:
    """Return how many alarms need a look."""
    return 0 if isinstance(record, StoreError) or not record.alarms else len(record.open_alarms)


def _said(name: str, record: MonitorRecord | StoreError) -> str:
    return (name if isinstance(record, StoreError) else f"{name} {record.watched.subject}").lower()


def _unreadable(name: str, error: StoreError) -> MonitorLine:
    words = " ".join(str(error).split())[:200]
    return MonitorLine(
        name=name,
        state="unreadable",
        subject="",
        kind="",
        windows=0,
        unusual=False,
        open_alarms=0,
        is_drifting=False,
        last_at="",
        trouble=words,
    )


def _line(project: ProjectFolder, record: MonitorRecord) -> MonitorLine:
    judged = next((window for window in reversed(record.windows) if not window.reason), None)
    is_watching = is_held(folder_of(project, record.name))
    return MonitorLine(
        name=record.name,
        state="watching" if is_watching else "stopped" if record.ended or not record.pid else "lost",
        subject=record.watched.subject,
        kind=record.watched.kind,
        windows=len(record.windows),
        unusual=judged is not None and judged.unusual,
        open_alarms=len(record.open_alarms),
        is_drifting=record.is_drifting,
        last_at=_moment(record.windows[-1].last_at) if record.windows else "",
        trouble=record.trouble,
    )


def _alarm(alarm: Alarm) -> AlarmAnswer:
    raised, seen = alarm.raised, alarm.acknowledged
    return AlarmAnswer(
        id=alarm.id,
        kind=raised.kind,
        state=alarm.state,
        raised_at=_moment(raised.at),
        since=_moment(raised.since),
        ended_at=_moment(alarm.ended_at),
        window=raised.window,
        rows=raised.rows,
        model_version=raised.model_version,
        text=raised.text,
        moved=[
            MovedAnswer(one.feature, one.statistic, one.size, one.probability, one.reference, one.now)
            for one in raised.moved
        ],
        seen_by=seen.by if seen else "",
        seen_at=_moment(seen.at) if seen else "",
        note=seen.note if seen else "",
    )


def _window(window: WindowJudged) -> WindowAnswer:
    return WindowAnswer(
        number=window.number,
        model_version=window.model_version,
        first_at=_moment(window.first_at),
        last_at=_moment(window.last_at),
        rows=window.rows,
        late=window.late,
        dropped=window.dropped,
        unusual=window.unusual,
        probability=window.probability,
        reason=window.reason,
        drift=window.drift,
        psi=window.psi,
    )


def _lines(record: MonitorRecord) -> list[Picture]:
    rates = [
        (window.last_at, window.rows / (window.last_at - window.first_at))
        for window in record.windows
        if window.last_at > window.first_at
    ]
    drawn = [("Rows in a second", rates)] if len(rates) > 1 else []
    for name in dict.fromkeys(name for error in record.errors for name in error.metrics):
        measured = [(one.last_at, one.metrics[name]) for one in record.errors if name in one.metrics and one.rows]
        if len(measured) > 1:
            drawn.append((f"{name}, where labels came", measured))
    return [
        Picture(title, drawing.line(title, points, (_words(points[0][0]), _words(points[-1][0]))))
        for title, points in drawn
    ]


def _last_judgement(monitor: Monitor, judged: list[WindowJudged]) -> tuple[Judgement | None, int]:
    if not judged:
        return None, 0
    try:
        return monitor.judgement(judged[-1].number), judged[-1].number
    except NotFoundError:
        return None, 0


def _columns(judgement: Judgement) -> list[Column]:
    def chance(column: Comparison) -> float:
        figures = [subjects[column.name] for subjects in judgement.statistics.values() if column.name in subjects]
        return min((figure.probability for figure in figures), default=1.0)

    ordered = sorted(judgement.columns, key=lambda column: (chance(column), column.name))[:_COLUMNS]
    indices = judgement.statistics.get("psi", {})
    return [
        Column(
            column.name,
            drawing.shares(column),
            before_and_after(column),
            indices[column.name].value if column.name in indices else None,
            chance(column),
        )
        for column in ordered
    ]


def _moment(at_s: float) -> str:
    return on_calendar(at_s).isoformat(timespec="seconds") if at_s else ""


def _words(at_s: float) -> str:
    return f"{on_calendar(at_s):%Y-%m-%d %H:%M}"
