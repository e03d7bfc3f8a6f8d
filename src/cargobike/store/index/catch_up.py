"""How tables catch up with journals: what changed, and reading on from where it stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.plain_files import open_plain
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.index.tables import Reading, Row, Tables
from cargobike.store.index.watched import differences

_LONGEST_PROBLEM: Final = 1000
_TAIL_BYTES: Final = 19  # `,"crc":"01234567"}` and the newline


def compare(
    connection: sa.Connection, tables: Tables, project: ProjectFolder, key: str
) -> tuple[list[Path], list[str]]:
    """Find folders whose journals differ from what was read, and ids of rows whose folders are gone."""
    main = tables.main
    query = sa.select(*(main.c[name] for name in tables.looked_at)).where(main.c.project == key)
    return differences(tables, project, list(connection.execute(query).mappings()))


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

    A journal that cannot be read, or says what no column can hold, gets a row with the problem: one must not hide the
    others. `key` says which project the folder belongs to, where one database serves several.
    """
    try:
        with connection.begin_nested():
            return _read_on(connection, tables, folder, key)
    except (*UNDECODABLE, ArithmeticError, LookupError, TypeError, ValueError, sa.exc.DataError) as error:
        problem = f"{folder / tables.kind.journal} cannot be understood: {error}"[:_LONGEST_PROBLEM]
    try:
        status = (folder / tables.kind.journal).stat()
    except OSError:
        return 0, True
    forget(connection, tables, key, [folder.name])
    _write(connection, tables, tables.begin(connection, folder, None, key), status, problem=problem, key=key)
    return 0, True


def _read_on(connection: sa.Connection, tables: Tables, folder: Path, key: str) -> tuple[int, bool]:
    main = tables.main
    mine = sa.and_(main.c.project == key, main.c.id == folder.name)
    journal = folder / tables.kind.journal
    row = connection.execute(sa.select(main).where(mine)).mappings().first()
    try:
        if row is not None and (row["problem"] or not _continues(journal, row)):
            forget(connection, tables, key, [folder.name])
            row = None
        status = journal.stat()
    except OSError:
        return 0, True  # deleted meanwhile: the next sync forgets it
    start: int = 0 if row is None else row["read_bytes"]
    reading = tables.begin(connection, folder, row, key)
    problem = ""
    try:
        reading.read_on()
    except StoreError as error:
        problem = str(error)
    if not _write(connection, tables, reading, status, problem=problem, key=key):
        return 0, True  # its writer has not written the first line yet
    return reading.reader.offset - start, reading.is_complete or bool(problem)


def _write(
    connection: sa.Connection, tables: Tables, reading: Reading, status: os.stat_result, *, problem: str, key: str
) -> bool:
    """Write the rows of a journal as far as it was read, and the status that it had before; returns if it has any."""
    values = reading.values(problem)
    if values is None:
        return False
    main, journal, offset = tables.main, reading.reader.path, reading.reader.offset
    values |= {
        "project": key,
        "id": journal.parent.name,
        "problem": problem,
        "read_bytes": offset,
        "read_tail": _tail(journal, offset),
        "journal_bytes": status.st_size if reading.is_complete or problem else -1,
        "journal_mtime_ns": status.st_mtime_ns,
    }
    connection.execute(main.delete().where(main.c.project == key, main.c.id == journal.parent.name))
    connection.execute(main.insert().values(values))
    reading.write_more(connection)
    return True


def _continues(journal: Path, row: Row) -> bool:
    """Tell whether a journal still begins with what was read: not cut, not replaced by another."""
    return bool(_tail(journal, row["read_bytes"]) == row["read_tail"])


def _tail(journal: Path, offset: int) -> str:
    if not offset:
        return ""
    with open_plain(journal) as file:
        file.seek(max(0, offset - _TAIL_BYTES))
        return file.read(min(offset, _TAIL_BYTES)).decode("latin-1")
