"""Tables on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from cargobike.core.values.times import on_calendar
from cargobike.data.keeping import KeptTable, list_tables
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document
from cargobike.ui.web.state import ServerState


def all_tables(state: ServerState) -> list[KeptTable]:
    """Return all versions of all tables, the newest first, removed ones too; not to be changed."""
    return state.lately("data.tables", lambda: list_tables(state.project, with_removed=True))


def data_card(state: ServerState) -> Card:
    """Make the card of the newest tables."""
    return Card(
        name="data",
        title="Newest data",
        address="/data",
        place=60,
        look=lambda: _look(state),
        empty="No tables yet. Write one:",
        command="cargobike data write rows.csv points",
    )


def documents(state: ServerState) -> Iterator[Document]:
    """List all tables for search, each in its newest version."""
    seen: set[str] = set()
    for table in _there(state):
        if (name := table.name or table.id) in seen:
            continue
        seen.add(name)
        yield Document(
            kind="table",
            name=table.id,
            address=f"/data/{quote(table.id, safe=':')}",
            text=table.header.source,
            columns=tuple(table.header.columns),
            words=table.header.user,
            at=table.header.at,
        )


def _there(state: ServerState) -> list[KeptTable]:
    return [table for table in all_tables(state) if table.removed_at is None]


def _look(state: ServerState) -> Glance:
    tables = _there(state)
    return Glance(entries=[_entry(table) for table in tables[:MOST_ENTRIES]], total=len(tables))


def _entry(table: KeptTable) -> Entry:
    rows = "" if table.rows is None else f"{table.rows:,} rows, "
    return Entry(
        title=table.id,
        address=f"/data/{quote(table.id, safe=':')}",
        text=f"{rows}{len(table.header.columns)} columns",
        at=on_calendar(table.header.at).isoformat(timespec="seconds"),
    )
