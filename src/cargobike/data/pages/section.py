"""The part of the dashboard that data provides: tables, as pages and as answers of the API."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pyarrow import ArrowException
from starlette.responses import Response

from cargobike.core.errors import CargobikeError, NotFoundError
from cargobike.core.values.times import on_calendar
from cargobike.data.keeping import KeptTable, find_table, head_of, versions_of
from cargobike.data.pages.answers import Table, TableDetails, TableFile, TablePage
from cargobike.data.pages.glancing import all_tables, data_card, documents
from cargobike.data.tables.samples import as_texts
from cargobike.store.history.environment import without_credentials
from cargobike.ui.web.answering import REFUSALS, sends
from cargobike.ui.web.section import Link, Section
from cargobike.ui.web.start import Server
from cargobike.ui.web.state import ServerState
from cargobike.ui.web.templates import Pages

Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Words = Annotated[str, Query(max_length=200, description="Only tables in whose name, columns or source this occurs.")]

_SAMPLE_ROWS = 20

pages = APIRouter()
api = APIRouter(tags=["data"], responses=REFUSALS)


@api.get("/data")
@sends
def tables(state: Server, words: Words = "", offset: Offset = 0, limit: Limit = 50) -> TablePage:
    """Return the tables that were written into the project in all their versions, the newest first."""
    return _listed(state, words, offset, limit)


@pages.get("/data")
def page(state: Server, templates: Pages, words: Words = "", offset: Offset = 0, limit: Limit = 100) -> Response:
    """Return the page with the list of tables."""
    return templates.page("data/tables.html", listed=_listed(state, words, offset, limit), words=words)


@api.get("/data/{table}")
@sends
def table(state: Server, table: str) -> TableDetails:
    """Return one table: its columns, its files, its versions and its first rows."""
    return _details(state, table)


@pages.get("/data/{table}")
def table_page(state: Server, templates: Pages, table: str) -> Response:
    """Return the page of one table."""
    return templates.page("data/table.html", shown=_details(state, table))


def data_section(server: ServerState) -> Section:
    """Make the section of data of one server."""
    return Section(
        name="data",
        holds="tables of data",
        links=(Link("Data", "/data", "data"),),
        pages=pages,
        api=api,
        package="cargobike.data.pages",
        cards=(data_card(server),),
        documents=lambda: documents(server),
        prepare=lambda: _prepare(server),
        filters={"bytes": size_text},
    )


def _prepare(server: ServerState) -> None:
    all_tables(server)


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


def _listed(state: ServerState, words: str, offset: int, limit: int) -> TablePage:
    tables = all_tables(state)
    if wanted := words.strip().lower():
        tables = [one for one in tables if wanted in _words(one)]
    shown = [_described(table) for table in tables[offset : offset + limit]]
    return TablePage(tables=shown, total=len(tables), offset=offset, limit=limit)


def _details(state: ServerState, text: str) -> TableDetails:
    if "/" in text:
        raise NotFoundError(f"There is no table {text!r} in this project.", wanted=text)
    found = find_table(state.project, text)
    sample, problem = [], found.problem
    if found.removed_at is None:
        try:
            sample = as_texts(head_of(state.project, found, _SAMPLE_ROWS))
        except (CargobikeError, OSError, ArrowException) as error:
            problem = str(error)
    entries = {} if found.table is None else {file.path: file for file in found.table.files}
    return TableDetails(
        table=_described(found),
        url="" if found.table is None else without_credentials(found.table.url),
        user=found.header.user,
        host=found.header.host,
        versions=[_described(one) for one in versions_of(state.project, found)],
        parts=[
            TableFile(
                path=path,
                rows=rows,
                size_bytes=entries[path].size_bytes if path in entries else None,
                row_groups=len(entries[path].groups) if path in entries else None,
            )
            for path, rows in found.header.files.items()
        ],
        sample=sample,
        problem=problem,
    )


def _words(table: KeptTable) -> str:
    return " ".join((table.id, table.header.source, *table.header.columns)).lower()


def _described(table: KeptTable) -> Table:
    header = table.header
    return Table(
        id=table.id,
        name=table.name,
        version=1 if table.table is None else table.table.version,
        fingerprint="" if table.table is None else table.table.fingerprint,
        rows=table.rows,
        files=len(header.files),
        size_bytes=header.size_bytes,
        written_at=on_calendar(header.at).isoformat(timespec="milliseconds"),
        source=header.source,
        columns=header.columns,
        is_removed=table.removed_at is not None,
    )
