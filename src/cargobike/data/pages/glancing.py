"""Tables on the start page and in search."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from cargobike.core.layout import ProjectFolder
from cargobike.core.values.times import on_calendar
from cargobike.data.keeping import KeptTable, list_tables
from cargobike.ui.web.overview.cards import MOST_ENTRIES, Card, Entry, Glance
from cargobike.ui.web.overview.searching import Document


def data_card(project: ProjectFolder) -> Card:
    """Make the card of the newest tables."""
    return Card(
        name="data",
        title="Newest data",
        address="/data",
        place=60,
        look=lambda: _look(project),
        empty="No tables yet. Write one:",
        command="cargobike data write rows.csv points",
    )


def documents(project: ProjectFolder) -> Iterator[Document]:
    """List all tables for search, each in its newest version."""
    seen: set[str] = set()
    for table in list_tables(project):
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


def _look(project: ProjectFolder) -> Glance:
    tables = list_tables(project)
    return Glance(entries=[_entry(table) for table in tables[:MOST_ENTRIES]], total=len(tables))


def _entry(table: KeptTable) -> Entry:
    rows = "" if table.rows is None else f"{table.rows:,} rows, "
    return Entry(
        title=table.id,
        address=f"/data/{quote(table.id, safe=':')}",
        text=f"{rows}{len(table.header.columns)} columns",
        at=on_calendar(table.header.at).isoformat(timespec="seconds"),
    )
