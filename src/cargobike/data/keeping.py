"""The tables of data that a project keeps: listing them, finding one, removing one."""

from __future__ import annotations

import getpass
import time
from dataclasses import dataclass
from typing import Any

from cargobike.core.errors import NotFoundError, StoreError, nearest
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.times import on_calendar
from cargobike.data.facts import TableRemoved, TableWritten
from cargobike.data.kind import DATA
from cargobike.store.index.opening import open_database
from cargobike.store.journal.journal import JournalWriter


@dataclass(frozen=True, slots=True)
class KeptTable:
    """One table of data, as lists show it; `removed_at` is `None` while its files are there."""

    id: str
    header: TableWritten
    removed_at: float | None = None
    problem: str = ""

    @property
    def rows(self) -> int | None:
        """How many rows it has; `None` if that was not recorded."""
        return sum(self.header.files.values()) if self.header.files else None

    def as_json(self) -> dict[str, Any]:
        """Return the documented keys of a table, for programs."""
        header = self.header
        return {
            "id": self.id,
            "written_at": _utc(header.at),
            "removed_at": None if self.removed_at is None else _utc(self.removed_at),
            "source": header.source,
            "rows": self.rows,
            "size_bytes": header.size_bytes,
            "columns": header.columns,
            "files": header.files,
            "user": header.user,
            "host": header.host,
            "problem": self.problem,
        }


def list_tables(project: ProjectFolder, *, with_removed: bool = False) -> list[KeptTable]:
    """Return the tables of a project, the newest first."""
    # SQLAlchemy is slow to import, and `cargobike.data` is loaded where no list is asked for.
    from cargobike.data.index.queries import all_tables  # noqa: PLC0415
    from cargobike.data.index.tables import TABLES  # noqa: PLC0415

    with open_database(project, TABLES) as database:
        database.sync()
        rows = all_tables(database)
    tables = [KeptTable(*row) for row in rows]
    tables += _unrecorded(project, {table.id for table in tables})
    tables.sort(key=lambda table: (-table.header.at, table.id))
    return [table for table in tables if with_removed or table.removed_at is None]


def _unrecorded(project: ProjectFolder, recorded: set[str]) -> list[KeptTable]:
    """Return tables that were written before tables had journals, as far as their files tell."""
    folders = (project.root / DATA.folder).glob("*")
    names = {folder: folder.name for folder in folders if DATA.id.fullmatch(folder.name)}
    tables = []
    for folder, name in names.items():
        if name not in recorded and (sizes := [file.stat().st_size for file in folder.glob("*.parquet")]):
            header = TableWritten(at=folder.stat().st_mtime, id=name, size_bytes=sum(sizes))
            tables.append(KeptTable(name, header, problem="It has no journal: its rows and columns are not recorded."))
    return tables


def find_table(project: ProjectFolder, text: str) -> KeptTable:
    """Return the table that a person names by its id, the unique start of one, or `last`.

    Raises:
        NotFoundError: If none fits, or several do.
    """
    tables = list_tables(project, with_removed=True)
    if text == "last" and tables:
        return tables[0]
    fitting = [table for table in tables if table.id == text] or [one for one in tables if one.id.startswith(text)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise NotFoundError(f"{text!r} may be {', '.join(table.id for table in fitting)}; give more of the id.")
    raise NotFoundError(f"There is no table {text!r} in {project.root}.{nearest(text, [one.id for one in tables])}")


def remove_table(project: ProjectFolder, table_id: str) -> None:
    """Delete the files of a table; that it was there, and what it held, stays in its journal.

    Raises:
        StoreError: If something cannot be deleted.
    """
    folder = project.root / DATA.place(table_id)
    with JournalWriter(folder / DATA.journal) as writer:
        writer.append([TableRemoved(at=time.time(), user=user_name())])
    try:
        for path in folder.iterdir():
            if path.name != DATA.journal:
                path.unlink()
    except OSError as error:
        raise StoreError(f"The table {table_id} cannot be removed: {error.strerror} ({error.filename}).") from error


def user_name() -> str:
    """Return who runs this process, empty if the system does not know."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _utc(at_s: float) -> str:
    return on_calendar(at_s).isoformat(timespec="milliseconds")
