"""Answers from the SQLite file of an index by the standard library alone.

SQLAlchemy takes a third of a second to import, more than all answers. It is needed to write: to make tables, to catch
up with journals, to start over with a damaged file. Where nothing of that is to be done, it is not loaded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import quote

from cargobike.core.layout import ProjectFolder
from cargobike.store.index.sqlite_file import PRODUCTS, check_mark, claim
from cargobike.store.index.watched import Row, Watched, differences

if TYPE_CHECKING:
    from cargobike.store.index.database import Database

_BUSY_TIMEOUT_S: Final = 30.0


class Answers(Protocol):
    """What answers questions about the journals of a product: `Database`, or `LightDatabase` before it.

    Attributes:
        project: Whose journals.
        key: Names the project in a database that serves several.
    """

    project: ProjectFolder
    key: str

    def sync(self) -> None:
        """Catch up with all journals of the product in the project."""

    def rebuild(self) -> None:
        """Forget everything and read all journals anew."""

    def name_of(self, table: str) -> str:
        """Return the name of a table as a query has to write it."""

    def select(self, query: str, parameters: Mapping[str, Any]) -> Sequence[Row]:
        """Return the rows that a query in plain SQL finds; parameters are written `:name` in it."""

    def close(self) -> None:
        """Close all connections; may be called twice."""


class LightDatabase:
    """A `Database` in the SQLite file of a project, which is opened as such only when there is something to write.

    Args:
        project: Whose journals.
        watched: Whose tables, and how to notice that they are not up to date.
        file: The SQLite file.
        whole: Opens the `Database`.

    Raises:
        StoreError: If the file is another program's.
    """

    key = ""

    def __init__(self, project: ProjectFolder, watched: Watched, file: Path, whole: Callable[[], Database]) -> None:
        self.project = project
        self._watched = watched
        self._file = file
        self._open_whole = whole
        self._database: Database | None = None
        if not file.exists() or self._try(self._version) != [{"version": watched.version}]:
            self._whole()

    def sync(self) -> None:
        """Catch up with all journals of the product in the project; where nothing has changed, nothing is locked."""
        columns = ", ".join(self._watched.looked_at)
        query = f"SELECT {columns} FROM {self._watched.table} WHERE project = :key"  # noqa: S608 - names of ours
        rows = self._try(lambda: self._read(query, {"key": self.key}))
        if rows is None or differences(self._watched, self.project, rows) != ([], []):
            self._whole().sync()

    def rebuild(self) -> None:
        """Forget everything and read all journals anew."""
        self._whole().rebuild()

    def name_of(self, table: str) -> str:
        """Return the name of a table as a query has to write it."""
        return table

    def select(self, query: str, parameters: Mapping[str, Any]) -> Sequence[Row]:
        """Return the rows that a query in plain SQL finds; parameters are written `:name` in it."""
        rows = self._try(lambda: self._read(query, parameters))
        return self._whole().select(query, parameters) if rows is None else rows

    def close(self) -> None:
        """Close all connections; may be called twice."""
        if self._database is not None:
            self._database.close()

    def _whole(self) -> Database:
        if self._database is None:
            self._database = self._open_whole()
        return self._database

    def _version(self) -> list[Row]:
        query = f"SELECT version FROM {PRODUCTS} WHERE product = :product"  # noqa: S608 - a name of ours
        return [dict(row) for row in self._read(query, {"product": self._watched.product})]

    def _try(self, read: Callable[[], list[Row]]) -> list[Row] | None:
        """Read something; `None` if the file is gone, damaged or busy, which the `Database` knows how to deal with."""
        try:
            return read()
        except sqlite3.Error:
            return None

    def _read(self, query: str, parameters: Mapping[str, Any]) -> list[Row]:
        claim(self._file, is_in_project=True)
        address = f"file:{quote(str(self._file))}?mode=rw"  # one that was deleted is not made anew here
        with closing(sqlite3.connect(address, timeout=_BUSY_TIMEOUT_S, uri=True)) as connection:
            check_mark(connection)
            connection.row_factory = sqlite3.Row
            return cast(list[Row], connection.execute(query, dict(parameters)).fetchall())
