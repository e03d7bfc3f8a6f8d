"""Queries of the tables of data in the index."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from cargobike.data.facts import TableWritten
from cargobike.data.index.tables import data_tables
from cargobike.store.index.database import Database


def all_tables(database: Database) -> list[tuple[str, TableWritten, float | None, str]]:
    """Return id, what was written, when it was removed, and what is wrong with its journal; the newest first."""
    columns = data_tables.c
    query = sa.select(data_tables).where(columns.project == database.key)
    rows = database.rows(query.order_by(columns.written_at.desc(), columns.id))
    return [
        (row["id"], msgspec.json.decode(row["header"], type=TableWritten), row["removed_at"], row["problem"])
        for row in rows
    ]
