"""`cargobike data`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from cargobike.cli.asking import Yes, confirm
from cargobike.cli.completing import fitting_in_project
from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.values.words import MISSING
from cargobike.data.commands.making import pack, write
from cargobike.data.commands.progress import progress_line
from cargobike.data.keeping import KeptTable, find_table, head_of, list_tables, remove_table
from cargobike.data.tables.samples import as_plain, as_texts
from cargobike.data.tables.verifying import verify as verify_table
from cargobike.data.tables.writer import Progress
from cargobike.data.usage import experiments_with
from cargobike.store.files import project
from cargobike.store.history.environment import without_credentials

data = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, _names, incomplete)


def _names() -> Iterator[tuple[str, str]]:
    for one in list_tables(project.current()):
        yield one.id, f"from {one.header.source}"


_Id = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A name, `name:version`, an id or its start, `last`, a path, a URL.",
        autocompletion=_complete,
    ),
]

data.command("write")(write)
data.command("pack")(pack)


@data.command("ls")
def ls(
    everything: Annotated[bool, typer.Option("--all", help="Also those that were removed.")] = False,
    as_json: _Json = False,
) -> None:
    """List the tables of the project in all their versions, the newest first."""
    tables = list_tables(project.current(), with_removed=everything)
    if as_json:
        print_json([one.as_json() for one in tables])
        return
    if not tables:
        console().print(f"There are no tables in {project.current().root}.")
        return
    made = table("TABLE", "ROWS", "COLUMNS", "MB", "FROM", right=("ROWS", "COLUMNS", "MB"), shortened=("FROM",))
    for one in tables:
        size = f"{one.header.size_bytes / 1e6:.1f}" if one.removed_at is None else "removed"
        made.add_row(
            cell(one.id, "bold"),
            cell(MISSING if one.rows is None else one.rows),
            cell(len(one.header.columns)),
            cell(size),
            cell(one.header.source),
        )
    print_table(made)


@data.command("show")
def show(table_id: _Id, as_json: _Json = False) -> None:
    """Show one table: its columns, its files."""
    found = find_table(project.current(), table_id)
    if as_json:
        print_json(found.as_json())
        return
    made = table("COLUMN", "TYPE")
    for name, kind in found.header.columns.items():
        made.add_row(cell(name), cell(kind))
    state = "removed" if found.removed_at is not None else f"{found.header.size_bytes / 1e6:.1f} MB"
    rows = MISSING if found.rows is None else found.rows
    console().print(cell(f"{found.id}: {rows} rows in {len(found.header.files)} files, {state}", "bold"))
    if found.table is not None:
        console().print(cell(f"fingerprint {found.table.fingerprint}, at {without_credentials(found.table.url)}"))
    print_table(made)
    if found.problem:
        console().print(cell(found.problem, "red"))


@data.command("head")
def head(
    table_id: _Id,
    rows: Annotated[int, typer.Option("--rows", "-n", help="How many rows.", min=1, max=10_000)] = 10,
    as_json: _Json = False,
) -> None:
    """Print the first rows of a table."""
    sample = head_of(project.current(), find_table(project.current(), table_id), rows)
    if as_json:
        print_json(as_plain(sample))
        return
    names = sample.schema.names
    made = table(*names, shortened=tuple(names))
    for row in as_texts(sample):
        made.add_row(*map(cell, row))
    print_table(made)


@data.command("verify")
def verify(table_id: _Id, as_json: _Json = False) -> None:
    """Read a table again, and compare it with what was written; exit code 1 if something differs."""
    found = find_table(project.current(), table_id)
    if found.removed_at is not None:
        raise NotFoundError(f"The table {found.id} was removed.", wanted=found.id)
    if found.table is None:
        raise InvalidInputError(f"The table {found.id} was written before tables had digests; write it again.")
    rows = 0
    with progress_line("read", quiet=as_json) as line:

        def note(more: int) -> None:
            nonlocal rows
            rows += more
            line(Progress(rows=rows, total_rows=found.rows))

        verdict = verify_table(found.table, note)
    if as_json:
        print_json({"id": found.id, "is_whole": not verdict.problems, **msgspec.structs.asdict(verdict)})
    elif verdict.problems:
        for problem in verdict.problems:
            console().print(cell(problem, "red"))
    else:
        typer.echo(f"{found.id} is as it was written: {verdict.rows:,} rows in {verdict.groups} row groups.")
    if verdict.problems:
        raise typer.Exit(1)


def _users(one: KeptTable) -> str:
    """Return which experiments were given a table, for people."""
    ids = experiments_with(project.current(), one)
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f", given to {', '.join(ids[-3:])}{more}" if ids else ""


@data.command("rm")
def rm(
    table_ids: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Names or ids, as for `show`.", autocompletion=_complete)
    ],
    yes: Yes = False,
    as_json: _Json = False,
) -> None:
    """Delete the files of tables; experiments that were given them can no longer be resumed."""
    found = [find_table(project.current(), one) for one in table_ids]
    names = "\n  ".join(f"{one.id}{_users(one)}" for one in found)
    if yes and any(map(_users, found)):
        typer.echo(f"These cannot be resumed any more:\n  {names}", err=True)
    confirm(f"Remove for good:\n  {names}\n?", yes=yes, as_json=as_json)
    for one in found:
        remove_table(project.current(), one)
    if as_json:
        print_json({"removed": [one.id for one in found]})
    else:
        typer.echo("\n".join(f"Removed {one.id}." for one in found))
