"""Monitors on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.times import on_calendar
from cargobike.monitoring.following import Records
from cargobike.monitoring.pages import describing
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document


def alarm_card(records: Records, project: ProjectFolder) -> Card:
    """Make the card of alarms: open ones first, then monitors that watch."""
    return Card(
        name="alarms",
        title="Alarms",
        address="/monitors",
        place=10,
        look=lambda: _look(records, project),
        empty="Nothing is watched yet. Watch a deployment:",
        command="cargobike monitor start digits",
    )


def documents(records: Records, project: ProjectFolder) -> Iterator[Document]:
    """List all monitors for search."""
    for name, record in records.all(project):
        if isinstance(record, StoreError):
            yield Document("monitor", name, f"/monitors/{name}", text=str(record)[:200])
            continue
        text = f"watches the {record.watched.kind} {record.watched.subject}"
        yield Document("monitor", name, f"/monitors/{name}", text=text, at=record.started_at)


def _look(records: Records, project: ProjectFolder) -> Glance:
    page = describing.listed(records, project, "", 0, MOST_ENTRIES)
    alarms = sum(describing.num_open_alarms(record) for _, record in records.all(project))
    entries = []
    for line in page.monitors:
        opened = records.find(project, line.name).open_alarms if line.open_alarms else []
        newest = opened[-1].raised if opened else None
        watched = f"{line.windows:,} windows, the last {'unusual' if line.unusual else 'usual'}"
        entries.append(
            Entry(
                title=line.name,
                address=f"/monitors/{line.name}",
                state="alarm" if opened else line.state,
                text=newest.text if newest else watched if line.windows else line.trouble or "no windows yet",
                at=on_calendar(newest.at).isoformat(timespec="seconds") if newest else "",
            )
        )
    return Glance(
        entries=entries,
        headline=alarms,
        words="open alarm" if alarms == 1 else "open alarms",
        is_urgent=alarms > 0,
        total=page.total,
    )
