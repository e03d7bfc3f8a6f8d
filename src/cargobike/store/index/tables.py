"""What a product provides for the index: its tables, and how a journal becomes rows of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import sqlalchemy as sa

from cargobike.store.index.watched import Row as Row
from cargobike.store.index.watched import Watched
from cargobike.store.journal.journal import JournalReader

BYTES_AT_ONCE: Final = 16 << 20
"""About how much of a journal is read in one step, and written in one transaction."""

Values = dict[str, Any]


def journal_columns() -> list[sa.Column[Any]]:
    """Make the columns that a table with one row for each journal begins with.

    `project` tells the projects apart that share a database. The others say how far the journal was read, why it could
    not be read to its end (`problem`), and how to notice that a journal was replaced.
    """
    return [
        sa.Column("project", sa.String(40), primary_key=True),
        sa.Column("id", sa.String(80), primary_key=True),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("read_bytes", sa.BigInteger, nullable=False),
        sa.Column("read_tail", sa.String(40), nullable=False),
        sa.Column("journal_bytes", sa.BigInteger, nullable=False),
        sa.Column("journal_mtime_ns", sa.BigInteger, nullable=False),
    ]


def insert_rows(connection: sa.Connection, table: sa.Table, rows: Sequence[Values]) -> None:
    """Insert rows, all with the same columns in the same order.

    Into SQLite without SQLAlchemy between, which takes as long for each row as making and storing it.
    """
    if not rows:
        return
    if connection.dialect.name != "sqlite":
        connection.execute(table.insert(), rows)
        return
    columns = ", ".join(f'"{name}"' for name in rows[0])
    places = ", ".join("?" * len(rows[0]))
    query = f"INSERT INTO {table.name} ({columns}) VALUES ({places})"  # noqa: S608 - names of ours
    connection.exec_driver_sql(query, [tuple(row.values()) for row in rows])


class Reading(ABC):
    """One step of reading a journal: from its row (or nothing) to new values.

    Attributes:
        reader: Reads the journal; it begins where the row says that reading ended.
        is_complete: Whether `read_on` has come to the end of the journal.
    """

    reader: JournalReader[Any]
    is_complete: bool = False

    @abstractmethod
    def read_on(self) -> None:
        """Read some more; raises `StoreError` at a line that cannot be read."""

    @abstractmethod
    def values(self, problem: str) -> Values | None:
        """Return the product's columns of the journal's row; `None` if there is nothing to say about it yet.

        With a `problem`, nothing or not everything could be read: there is a row all the same.
        """

    def write_more(self, connection: sa.Connection) -> None:  # noqa: B027 - most have one table
        """Write the rows of the product's other tables."""


class Tables(Watched):
    """The tables of one product.

    Attributes:
        owners: Each table with its column that holds the id of a thing. The first table has one row for each journal,
            and `journal_columns`; all have a column `project`.
    """

    owners: ClassVar[Mapping[sa.Table, sa.Column[Any]]]

    @property
    def main(self) -> sa.Table:
        """The table with one row for each journal."""
        return next(iter(self.owners))

    @abstractmethod
    def begin(self, connection: sa.Connection, folder: Path, row: Row | None, key: str) -> Reading:
        """Begin to read the journal of a thing from where its row says that reading ended."""
