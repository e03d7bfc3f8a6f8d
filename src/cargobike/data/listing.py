"""The tables that a project keeps: what their journals say, or else what lies in their folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.data.facts import DATA_FACTS, TableRemoved, TableWritten
from cargobike.data.kind import DATA
from cargobike.store.journal.journal import JournalReader


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """One table.

    Attributes:
        id: The name of its folder.
        written_at: Seconds since the epoch when it was written.
        size_bytes: What its files need on disk.
        files: How many files it has.
        rows: How many rows it has; `None` if that was not recorded.
        source: What it was made from; empty if that was not recorded.
        columns: Types of its columns by name, in order; empty if they were not recorded.
        is_removed: Whether its files were deleted since.
    """

    id: str
    written_at: float
    size_bytes: int
    files: int
    rows: int | None = None
    source: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    is_removed: bool = False


def list_tables(project: ProjectFolder) -> list[TableInfo]:
    """Return all tables of a project, the newest first."""
    try:
        folders = [each for each in (project.root / DATA.folder).iterdir() if DATA.id.fullmatch(each.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    tables = [_recorded(folder) or _seen(folder) for folder in folders]
    return sorted(tables, key=lambda table: (-table.written_at, table.id))


def _recorded(folder: Path) -> TableInfo | None:
    """Return what the journal of a table says; `None` if it has none that can be read."""
    try:
        facts = JournalReader(folder / DATA.journal, DATA_FACTS).read_new()
    except (OSError, StoreError):
        return None
    if not facts or not isinstance(facts[0], TableWritten):
        return None
    written = facts[0]
    return TableInfo(
        id=folder.name,
        written_at=written.at,
        size_bytes=written.size_bytes,
        files=len(written.files),
        rows=sum(written.files.values()),
        source=written.source,
        columns=written.columns,
        is_removed=isinstance(facts[-1], TableRemoved),
    )


def _seen(folder: Path) -> TableInfo:
    """Return what can be seen of a table that was written before tables had journals."""
    sizes = [file.stat().st_size for file in folder.glob("*.parquet")]
    return TableInfo(
        id=folder.name, written_at=folder.stat().st_mtime, size_bytes=sum(sizes), files=len(sizes), is_removed=not sizes
    )
