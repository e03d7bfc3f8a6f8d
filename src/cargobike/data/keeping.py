"""The tables of data that a project keeps: listing them, finding one, removing one.

Those that were given to experiments before tables had manifests are known from their journals.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cargobike.core.errors import NotFoundError, StoreError, nearest
from cargobike.core.layout import ProjectFolder
from cargobike.core.running.accounts import user_name
from cargobike.core.values.times import on_calendar
from cargobike.data.facts import TableRemoved, TableWritten
from cargobike.data.kind import DATA
from cargobike.data.sources.opening import open_source
from cargobike.data.tables.addresses import NAME
from cargobike.data.tables.listing import versions_in
from cargobike.data.tables.opening import open_in
from cargobike.data.tables.removing import remove_version
from cargobike.data.tables.table import Table
from cargobike.store.history.environment import without_credentials
from cargobike.store.index.opening import open_database
from cargobike.store.journal.journal import JournalWriter


@dataclass(frozen=True, slots=True)
class KeptTable:
    """One version of a table, as lists show it; `removed_at` is `None` while its files are there.

    Attributes:
        id: What commands call it: `higgs:3`, or the id of a table that was given to an experiment.
        header: What was written.
        removed_at: When its files were deleted.
        problem: Why not everything is known of it.
        table: The table itself; `None` if it was written before tables had manifests.
    """

    id: str
    header: TableWritten
    removed_at: float | None = None
    problem: str = ""
    table: Table | None = None

    @property
    def rows(self) -> int | None:
        """How many rows it has; `None` if that was not recorded."""
        if self.table is not None:
            return self.table.num_rows
        return sum(self.header.files.values()) if self.header.files else None

    @property
    def name(self) -> str:
        """What it is called in all its versions; empty if it has only an id."""
        name = self.id.partition(":")[0]
        return "" if DATA.id.fullmatch(name) else name

    def as_json(self) -> dict[str, Any]:
        """Return the documented keys of a table, for programs."""
        header = self.header
        return {
            "id": self.id,
            "name": self.name,
            "version": 1 if self.table is None else self.table.version,
            "fingerprint": "" if self.table is None else self.table.fingerprint,
            "url": "" if self.table is None else without_credentials(self.table.url),
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
    """Return all versions of the tables of a project, the newest first."""
    # SQLAlchemy is slow to import, and `cargobike.data` is loaded where no list is asked for.
    from cargobike.data.index.queries import all_tables  # noqa: PLC0415
    from cargobike.data.index.tables import TABLES  # noqa: PLC0415

    with open_database(project, TABLES) as database:
        database.sync()
        rows = all_tables(database)
    tables = [KeptTable(*row) for row in rows]
    tables += [_with_manifest(*version) for version in versions_in(project)]
    tables += _unrecorded(project, {table.id for table in tables})
    tables.sort(key=lambda table: (-table.header.at, table.id))
    return [table for table in tables if with_removed or table.removed_at is None]


def versions_of(project: ProjectFolder, table: KeptTable) -> list[KeptTable]:
    """Return all versions of the name of a table, the newest first, removed ones too; none if it has only an id."""
    if not table.name:
        return []
    found = [_with_manifest(*one) for one in versions_in(project, table.name)]
    return sorted(found, key=lambda one: (-one.header.at, one.id))


def kept(table: Table) -> KeptTable:
    """Return a table as lists show it."""
    manifest = table.manifest
    is_id = table.address.in_project and DATA.id.fullmatch(table.name)
    header = TableWritten(
        at=manifest.at,
        id=table.name if is_id else f"{table.name}:{table.version}",
        cargobike=manifest.cargobike,
        source=manifest.source,
        columns=manifest.columns,
        files={file.path: file.rows for file in manifest.files},
        size_bytes=manifest.size_bytes,
        user=manifest.user,
        host=manifest.host,
    )
    return KeptTable(header.id, header, manifest.removed_at, table=table)


def _with_manifest(name: str, version: int, table: Table | StoreError) -> KeptTable:
    if isinstance(table, Table):
        return kept(table)
    header = TableWritten(at=0.0, id=f"{name}:{version}")
    return KeptTable(header.id, header, problem=str(table))


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
    """Return the table that a person names.

    Args:
        project: The project.
        text: A name, which means the newest version; a name and a version, `higgs:3`; an id or the unique start of
            one; `last`; or a path or URL of a table anywhere.

    Raises:
        NotFoundError: If none fits, or several do.
    """
    if "/" in text:
        return kept(open_in(text, project))
    name, _, version = text.partition(":")
    if (
        text != "last" and NAME.fullmatch(name) and not DATA.id.fullmatch(name)
    ):  # most often; the others need not be listed for it
        named = [_with_manifest(*one) for one in versions_in(project, name)]
        there = [table for table in named if table.removed_at is None] or named
        if version and (fitting := [table for table in named if table.id == text]):
            return fitting[0]
        if there and not version:
            return there[-1]
    tables = list_tables(project, with_removed=True)
    if text == "last" and tables:
        return tables[0]
    fitting = [table for table in tables if table.id == text]
    if not fitting and (named := [table for table in tables if table.name == text]):
        there = [table for table in named if table.removed_at is None] or named
        fitting = [max(there, key=lambda one: int(one.id.partition(":")[2]))]
    fitting = fitting or [one for one in tables if not one.name and one.id.startswith(text)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise NotFoundError(f"{text!r} may be {', '.join(table.id for table in fitting)}; give more of the id.")
    names = [*dict.fromkeys(one.name for one in tables if one.name), *(one.id for one in tables)]
    raise NotFoundError(f"There is no table {text!r} in {project.root}.{nearest(text, names)}")


def head_of(project: ProjectFolder, table: KeptTable, rows: int) -> pa.Table:
    """Return the first rows of a table.

    Raises:
        NotFoundError: If it was removed.
        StoreError: If its files cannot be read.
    """
    if table.removed_at is not None:
        raise NotFoundError(f"The table {table.id} was removed.", wanted=table.id)
    if table.table is not None:
        return table.table.head(rows)
    if table.problem and table.name:
        raise StoreError(table.problem)
    with contextlib.closing(open_source(project.root / DATA.place(table.id))) as source:
        return pa.concat_tables(source.read(group) for group in range(min(1, len(source.groups)))).slice(0, rows)


def remove_table(project: ProjectFolder, table: KeptTable | str) -> None:
    """Delete the files of a version of a table; that it was there, and what it held, stays known.

    Raises:
        StoreError: If something cannot be deleted.
    """
    table = find_table(project, table) if isinstance(table, str) else table
    if table.table is not None:
        remove_version(table.table.address, table.table.version)
        return
    folder = project.root / DATA.place(table.id)
    with JournalWriter(folder / DATA.journal) as writer:
        writer.append([TableRemoved(at=time.time(), user=user_name())])
    try:
        for path in folder.iterdir():
            if path.name != DATA.journal:
                path.unlink()
    except OSError as error:
        raise StoreError(f"The table {table.id} cannot be removed: {error.strerror} ({error.filename}).") from error


def _utc(at_s: float) -> str:
    return on_calendar(at_s).isoformat(timespec="milliseconds")
