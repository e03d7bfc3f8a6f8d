"""Alarms that set off pipelines: `when=monitoring.drifted("digits")`; and the rows that an alarm is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import log_keeper
from cargobike.core.registering.triggers import Seen, Trigger
from cargobike.monitoring.asking.subjects import read_subject
from cargobike.monitoring.facts import AlarmRaised
from cargobike.monitoring.handle import Monitor
from cargobike.monitoring.record import MonitorRecord, find_record, folder_of
from cargobike.monitoring.watching.features import answered
from cargobike.store.files import project as projects
from cargobike.store.files.locking import is_held
from cargobike.store.files.mirror import refresh

_AT_ONCE: Final = 100_000


def look(trigger: Trigger, mark: str, project: ProjectFolder) -> Seen:
    """Return the newest alarm that was raised since a mark, and the ids of all; the mark is the number of alarms.

    Raises:
        NotFoundError: If there is no such monitor.
    """
    refresh(project)
    record = find_record(project, trigger.subject)
    seen = int(mark) if mark.isdigit() else len(record.alarms)
    kind = trigger.options.get("kind", "")
    new = [alarm.raised for alarm in record.alarms[seen:] if kind in {"", alarm.raised.kind}]
    cause = {**cause_of(record, new[-1]), "alarms": [alarm.id for alarm in new]} if new else None
    return Seen(str(len(record.alarms)), cause)


def cause_of(record: MonitorRecord, alarm: AlarmRaised) -> dict[str, Any]:
    """Return an alarm as the cause of a pipeline: plain data."""
    watched = record.watched
    return {
        "kind": "drifted",
        "monitor": record.name,
        "deployment": watched.subject,
        "alarm": alarm.id,
        "what": alarm.kind,
        "text": alarm.text,
        "since": alarm.since,
        "window": alarm.window,
        "windows": list(alarm.windows),
        "first_at": alarm.first_at,
        "last_at": alarm.last_at,
        "model": watched.model,
        "model_version": alarm.model_version,
        "rows": alarm.rows,
        "features": [moved.feature for moved in alarm.moved],
        "moved": list(msgspec.to_builtins(alarm.moved)),
        "reference": watched.reference,
        "watched": watched.kind,
        "data_version": ":".join(watched.reference_thing[1:]).strip(":"),
        "position": alarm.position,
    }


def window_rows(cause: Mapping[str, Any], *, since: bool = False, project: ProjectFolder | None = None) -> pa.Table:
    """Return the rows of the log that an alarm is about: those of its window, by the times of their requests.

    Args:
        cause: What a pipeline got as its cause, or what `cause_of` returns.
        since: Whether all rows since the alarm began are wanted, rather than those of the window that completed it.
        project: Another project than the one in use.

    Raises:
        InvalidInputError: If it is no cause of an alarm.
        NotFoundError: If the deployment is gone.
    """
    try:
        deployment, version = str(cause["deployment"]), int(cause["model_version"])
        first, last = float(cause["since" if since else "first_at"]), float(cause["last_at"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(f"This is no cause of an alarm: {error!r}. Give what the pipeline got.") from error
    follower = log_keeper(str(cause.get("watched", "deployment"))).follow(deployment, project or projects.current())
    kind = pa.timestamp("us", "UTC")
    bounds = [pa.scalar(round(at * 1e6), pa.int64()).cast(kind) for at in (first, last)]
    parts, position = list[pa.Table](), ""
    try:
        while True:
            stretch = follower.read(position, _AT_ONCE)
            rows = answered(stretch.rows)
            inside = pc.and_(pc.greater_equal(rows["at"], bounds[0]), pc.less_equal(rows["at"], bounds[1]))
            if not since:
                inside = pc.and_(inside, pc.equal(rows["version"], version))
            parts.append(rows.filter(inside))
            position = stretch.position
            if not stretch.more:
                break
    finally:
        follower.close()
    return pa.concat_tables(parts, promote_options="permissive").sort_by([("at", "ascending")])


def recover_watch(_: str, project: ProjectFolder, deployment: str, *__: Any, **said: Any) -> Monitor | None:
    """Return the monitor that a step of a pipeline had begun when its process was killed, if something watches."""
    name = str(said.get("name") or read_subject(deployment)[1])
    return Monitor(name, project) if is_held(folder_of(project, name)) else None


def open_monitor(name: str, project: ProjectFolder) -> Monitor:
    """Return a monitor that a pipeline has kept by reference."""
    find_record(project, name)
    return Monitor(name, project)
