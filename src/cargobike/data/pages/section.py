"""The part of the dashboard that data provides: the list of tables, as a page and as an answer of the API."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from cargobike.core.values.times import on_calendar
from cargobike.data.keeping import KeptTable, list_tables
from cargobike.ui.web.answering import REFUSALS, Answer, sends
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Count = Annotated[int, Field(ge=0)]

pages = APIRouter()
api = APIRouter(tags=["data"], responses=REFUSALS)


class Table(Answer):
    """One table that a project keeps."""

    id: str
    rows: Annotated[int | None, Field(description="How many rows it has; `null` if that was not recorded.")]
    files: Count
    size_bytes: Count
    written_at: str
    source: Annotated[str, Field(description="What it was made from, empty if that was not recorded.")]
    columns: Annotated[dict[str, str], Field(description="Types of its columns by name.")]
    is_removed: Annotated[bool, Field(description="Whether its files were deleted since.")]


class TablePage(Answer):
    """A part of the list of tables."""

    tables: list[Table]
    total: Count
    offset: Count
    limit: Count


@api.get("/data")
@sends
def tables(state: Server, offset: Offset = 0, limit: Limit = 50) -> TablePage:
    """Return the tables that were written into the project, the newest first."""
    return _listed(state, offset, limit)


@pages.get("/data")
def page(state: Server, templates: Pages, offset: Offset = 0, limit: Limit = 200) -> Response:
    """Return the page with the list of tables."""
    return templates.page("data/tables.html", listed=_listed(state, offset, limit))


def data_section(server: ServerState) -> Section:
    """Make the section of data of one server."""
    return Section(
        name="data",
        holds="tables of data",
        links=(Link("Data", "/data", "data"),),
        pages=pages,
        api=api,
        package="cargobike.data.pages",
        filters={"bytes": size_text},
    )


def size_text(size_bytes: int) -> str:
    """Return a size for people.

    Example:
        >>> size_text(900), size_text(1_500_000)
        ('900 B', '1.5 MB')
    """
    size, unit = float(size_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _listed(state: ServerState, offset: int, limit: int) -> TablePage:
    tables = list_tables(state.project, with_removed=True)
    shown = [_described(table) for table in tables[offset : offset + limit]]
    return TablePage(tables=shown, total=len(tables), offset=offset, limit=limit)


def _described(table: KeptTable) -> Table:
    header = table.header
    return Table(
        id=table.id,
        rows=table.rows,
        files=len(header.files),
        size_bytes=header.size_bytes,
        written_at=on_calendar(header.at).isoformat(timespec="milliseconds"),
        source=header.source,
        columns=header.columns,
        is_removed=table.removed_at is not None,
    )
