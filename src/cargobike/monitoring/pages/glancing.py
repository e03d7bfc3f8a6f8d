"""Monitors on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.errors import StoreError
from cargobike.core.values.times import on_calendar
from cargobike.monitoring.following import RECORDS
from cargobike.monitoring.pages import describing
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document
from cargobike.ui.web.state import ServerState


def known_monitors(state: ServerState) -> list[describing.Known]:
    """Return all monitors by name with what their journals say; not to be changed."""
    return state.lately("monitoring.records", lambda: list(RECORDS.all(state.project)))


def alarm_card(state: ServerState) -> Card:
    """Make the card of alarms: open ones first, then monitors that watch."""
    return Card(
        name="alarms",
        title="Alarms",
        address="/monitors",
        place=10,
        look=lambda: _look(state),
        empty="Nothing is watched yet. Watch a deployment:",
        command="cargobike monitor start digits",
    )


def documents(state: ServerState) -> Iterator[Document]:
    """List all monitors for search."""
    for name, record in known_monitors(state):
        if isinstance(record, StoreError):
            yield Document("monitor", name, f"/monitors/{name}", text=str(record)[:200])
            continue
        text = f"watches the {record.watched.kind} {record.watched.subject}"
        yield Document("monitor", name, f"/monitors/{name}", text=text, at=record.started_at)


def _look(state: ServerState) -> Glance:
    known = known_monitors(state)
    page = describing.listed(state.project, known, "", 0, MOST_ENTRIES)
    alarms = sum(describing.num_open_alarms(record) for _, record in known)
    entries = []
    for line in page.monitors:
        opened = RECORDS.find(state.project, line.name).open_alarms if line.open_alarms else []
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
