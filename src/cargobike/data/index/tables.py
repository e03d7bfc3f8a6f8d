"""How the journals of tables become rows of the index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
import sqlalchemy as sa

from cargobike.core.facts import encode_fact
from cargobike.core.registering.kinds import Kind
from cargobike.data.facts import DATA_FACTS, TableRemoved, TableWritten
from cargobike.data.kind import DATA
from cargobike.store.index.tables import Reading, Row, Tables, Values, journal_columns
from cargobike.store.journal.journal import JournalReader

data_tables = sa.Table(
    "data_tables",
    sa.MetaData(),
    *journal_columns(),
    sa.Column("written_at", sa.Double, nullable=False, index=True),
    sa.Column("removed_at", sa.Double),
    sa.Column("header", sa.Text, nullable=False),
)


class DataTables(Tables):
    """One row for each table of data."""

    product: ClassVar[str] = "data"
    version: ClassVar[int] = 1
    kind: ClassVar[Kind] = DATA
    table: ClassVar[str] = data_tables.name
    owners: ClassVar[Mapping[sa.Table, sa.Column[Any]]] = {data_tables: data_tables.c.id}

    def begin(self, connection: sa.Connection, folder: Path, row: Row | None, key: str) -> Reading:
        """Begin to read the journal of a table from where its row says that reading ended."""
        return _TableReading(folder, row)


TABLES: Final = DataTables()


class _TableReading(Reading):
    def __init__(self, folder: Path, row: Row | None) -> None:
        start = 0 if row is None else row["read_bytes"]
        self.reader = JournalReader(folder / DATA.journal, DATA_FACTS, start, of=folder.name)
        self.folder = folder
        self.header = None if row is None else msgspec.json.decode(row["header"], type=TableWritten)
        self.removed_at: float | None = None if row is None else row["removed_at"]

    def read_on(self) -> None:
        """Read the rest: such a journal has a line or two."""
        for fact in self.reader.read_new():
            if isinstance(fact, TableRemoved):
                self.removed_at = fact.at
            else:
                self.header = fact
        self.is_complete = True

    def values(self, problem: str) -> Values | None:
        """Return the columns of the table."""
        if self.header is None and problem:
            self.header = TableWritten(at=0.0, id=self.folder.name)
        if self.header is None:
            return None
        header = encode_fact(self.header).decode().replace("\\u0000", "\N{SYMBOL FOR NULL}")
        return {"written_at": self.header.at, "removed_at": self.removed_at, "header": header}
