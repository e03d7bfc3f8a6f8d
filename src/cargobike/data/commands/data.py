"""`cargobike data`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from cargobike.cli.completing import fitting_in_project
from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.core.values.words import MISSING
from cargobike.data.keeping import find_table, list_tables, remove_table
from cargobike.store.files import project

data = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, _names, incomplete)


def _names() -> Iterator[tuple[str, str]]:
    for one in list_tables(project.current()):
        yield one.id, f"from {one.header.source}"


_Id = Annotated[str, typer.Argument(metavar="ID", help="Id, the start of one, or `last`.", autocompletion=_complete)]


@data.command("ls")
def ls(
    everything: Annotated[bool, typer.Option("--all", help="Also those that were removed.")] = False,
    as_json: _Json = False,
) -> None:
    """List the tables that were given to experiments, the newest first."""
    tables = list_tables(project.current(), with_removed=everything)
    if as_json:
        print_json([one.as_json() for one in tables])
        return
    if not tables:
        console().print(f"There are no tables in {project.current().root}.")
        return
    made = table("ID", "ROWS", "COLUMNS", "MB", "FROM", right=("ROWS", "COLUMNS", "MB"), shortened=("FROM",))
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
    print_table(made)
    if found.problem:
        console().print(cell(found.problem, "red"))


@data.command("rm")
def rm(
    table_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids, or starts of them.", autocompletion=_complete)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: _Json = False,
) -> None:
    """Delete the files of tables; experiments that were given them can no longer be resumed."""
    if as_json and not yes:
        raise typer.BadParameter("--json cannot ask; give --yes as well")
    found = [find_table(project.current(), one) for one in table_ids]
    if not yes:
        names = "\n  ".join(one.id for one in found)
        typer.confirm(f"Remove for good:\n  {names}\n?", abort=True)
    for one in found:
        remove_table(project.current(), one.id)
    if as_json:
        print_json({"removed": [one.id for one in found]})
    else:
        typer.echo("\n".join(f"Removed {one.id}." for one in found))
