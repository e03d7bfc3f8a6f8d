"""How tables catch up with journals: what changed, and reading on from where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.store.files.things import folders_of
from cargobike.store.index.tables import Row, Tables

_TAIL_BYTES: Final = 19  # `,"crc":"01234567"}` and the newline


def compare(
    connection: sa.Connection, tables: Tables, project: ProjectFolder, key: str
) -> tuple[list[Path], list[str]]:
    """Find folders whose journals differ from what was read, and ids of rows whose folders are gone."""
    main = tables.main
    columns = ("id", "journal_bytes", "journal_mtime_ns", *tables.compared)
    query = sa.select(*(main.c[name] for name in columns)).where(main.c.project == key)
    rows = {row["id"]: row for row in connection.execute(query).mappings()}
    changed, present = [], set()
    for folder in folders_of(tables.kind, project.root):
        try:
            stat = (folder / tables.kind.journal).stat()
        except OSError:
            continue
        present.add(folder.name)
        row = rows.get(folder.name)
        if (
            row is None
            or (stat.st_size, stat.st_mtime_ns) != (row["journal_bytes"], row["journal_mtime_ns"])
            or tables.has_changed(folder, row)
        ):
            changed.append(folder)
    return changed, [one for one in rows if one not in present]


def forget(connection: sa.Connection, tables: Tables, key: str, ids: Sequence[str]) -> None:
    """Delete everything about some things."""
    for table, owner in tables.owners.items():
        for one in ids:
            connection.execute(table.delete().where(table.c.project == key, owner == one))


def clear(connection: sa.Connection, tables: Tables, key: str) -> None:
    """Delete everything about a project."""
    for table in tables.owners:
        connection.execute(table.delete().where(table.c.project == key))


def catch_up(connection: sa.Connection, tables: Tables, folder: Path, key: str) -> tuple[int, bool]:
    """Read on in one journal and update its rows; returns the bytes read, and whether that was all.

    `key` says which project the folder belongs to, where one database serves several.
    """
    main = tables.main
    mine = sa.and_(main.c.project == key, main.c.id == folder.name)
    journal = folder / tables.kind.journal
    row = connection.execute(sa.select(main).where(mine)).mappings().first()
    try:
        if row is not None and (row["problem"] or not _continues(journal, row)):
            forget(connection, tables, key, [folder.name])
            row = None
        stat = journal.stat()
    except OSError:
        return 0, True  # deleted meanwhile: the next sync forgets it
    start: int = 0 if row is None else row["read_bytes"]
    reading = tables.begin(connection, folder, row, key)
    problem = ""
    try:
        reading.read_on()
    except StoreError as error:
        problem = str(error)
    values = reading.values(problem)
    if values is None:
        return 0, True  # its writer has not written the first line yet
    offset = reading.reader.offset
    values |= {
        "project": key,
        "id": folder.name,
        "problem": problem,
        "read_bytes": offset,
        "read_tail": _tail(journal, offset),
        "journal_bytes": stat.st_size if reading.is_complete or problem else -1,
        "journal_mtime_ns": stat.st_mtime_ns,
    }
    connection.execute(main.delete().where(mine))
    connection.execute(main.insert().values(values))
    reading.write_more(connection)
    return offset - start, reading.is_complete or bool(problem)


def _continues(journal: Path, row: Row) -> bool:
    """Tell whether a journal still begins with what was read: not cut, not replaced by another."""
    return bool(_tail(journal, row["read_bytes"]) == row["read_tail"])


def _tail(journal: Path, offset: int) -> str:
    with journal.open("rb") as file:
        file.seek(max(0, offset - _TAIL_BYTES))
        return file.read(min(offset, _TAIL_BYTES)).decode("latin-1")
