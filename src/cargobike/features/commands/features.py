"""`cargobike features`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.core.values.words import MISSING
from cargobike.features.commands.naming import Json, Kind, Name, complete, find, kind_of
from cargobike.features.commands.serving import lineage, materialize, vector, verify
from cargobike.features.commands.upkeep import compact, delete, vacuum
from cargobike.features.commands.views import datasets, show_dataset, show_view, views
from cargobike.features.groups.commits import Commit
from cargobike.features.groups.describing import described, listed
from cargobike.features.groups.finding import list_groups
from cargobike.features.groups.finding import search as search_groups
from cargobike.features.statistics.report import Statistics, figure_words
from cargobike.store.files import project

features = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

features.command("delete")(delete)
features.command("compact")(compact)
features.command("vacuum")(vacuum)
features.command("vector")(vector)
features.command("verify")(verify)
features.command("materialize")(materialize)
features.command("views")(views)
features.command("datasets")(datasets)
features.command("lineage")(lineage)

_COMMITS_SHOWN = 10


@features.command("ls")
def ls(as_json: Json = False) -> None:
    """List the feature groups of the project, each in its newest version."""
    groups = [listed(one) for one in list_groups(project.current())]
    if as_json:
        print_json(groups)
        return
    if not groups:
        console().print(f"There are no feature groups in {project.current().root}.")
        return
    made = table("GROUP", "ROWS", "FEATURES", "KEY", "UPDATED", "DESCRIPTION", right=("ROWS", "FEATURES"))
    for one in groups:
        made.add_row(
            cell(f"{one['name']}:{one['version']}", "bold"),
            cell(f"{one['rows']:,}"),
            cell(len(one["features"])),
            cell(", ".join(one["key"])),
            cell((one["updated_at"] or MISSING)[:16].replace("T", " ")),
            cell(one["description"]),
        )
    print_table(made)


@features.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, or `name:version`.", autocompletion=complete)],
    kind: Annotated[
        Kind | None, typer.Option(help="What it is, if several have the name. [default: the first that has it]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show one group, view or training dataset: what it is, its columns or parts, what it was made from."""
    chosen = kind or kind_of(name)
    if chosen == "group":
        _show_group(name, as_json)
    elif chosen == "view":
        show_view(name, as_json)
    else:
        show_dataset(name, as_json)


def _show_group(name: str, as_json: bool) -> None:
    group = find(name)
    facts = described(group)
    if as_json:
        print_json(facts)
        return
    console().print(cell(f"{group.name}:{group.version}: {facts['rows']:,} rows, at {facts['url']}", "bold"))
    if facts["description"]:
        console().print(cell(facts["description"]))
    words = [
        f"owner {facts['owner']}" if facts["owner"] else "",
        f"tags {', '.join(facts['tags'])}" if facts["tags"] else "",
    ]
    if any(words):
        console().print(cell("; ".join(word for word in words if word)))
    for expectation in facts["expectations"]:
        console().print(cell(f"expects {expectation}"))
    made = table("COLUMN", "TYPE", "ROLE")
    for column in facts["columns"]:
        made.add_row(cell(column["name"]), cell(column["type"]), cell(column["role"]))
    print_table(made)
    _print_commits(group.history()[:_COMMITS_SHOWN])


@features.command("search")
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A part of a name, description, tag, owner or feature.")],
    as_json: Json = False,
) -> None:
    """Find groups by any word about them."""
    matches = search_groups(text, project.current())
    if as_json:
        print_json([{**listed(group), "found_in": places} for group, places in matches])
        return
    if not matches:
        console().print(cell(f"No feature group has {text!r} in its words."))
        return
    made = table("GROUP", "FOUND IN", "DESCRIPTION")
    for group, places in matches:
        made.add_row(
            cell(f"{group.name}:{group.version}", "bold"), cell(", ".join(places)), cell(group.definition.description)
        )
    print_table(made)


@features.command("stats")
def stats(
    name: Name,
    as_of: Annotated[str | None, typer.Option("--as-of", help="As it was after a commit, or at a time.")] = None,
    commit: Annotated[int | None, typer.Option("--commit", help="Only the rows that this commit wrote.")] = None,
    as_json: Json = False,
) -> None:
    """Print statistics of a group: counts, extremes, means, quantiles, distinct values."""
    if as_of is not None and commit is not None:
        raise typer.BadParameter("--as-of and --commit exclude each other")
    group = find(name)
    statistics = group.statistics(as_of) if commit is None else group.statistics_of(commit)
    if as_json:
        print_json(statistics.as_json())
        return
    _print_statistics(statistics)


@features.command("insert")
def insert(
    name: Name,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Parquet, CSV or JSON-lines files, or a SQL query.")],
    *,
    duplicates: Annotated[
        str, typer.Option(help="Which counts of rows with the same key: refuse, first, last.")
    ] = "refuse",
    new_columns: Annotated[str, typer.Option(help="New columns: refuse, add.")] = "refuse",
    missing_columns: Annotated[str, typer.Option(help="Missing features: refuse, null.")] = "refuse",
    bad_rows: Annotated[str, typer.Option(help="Rows that break an expectation: refuse, quarantine.")] = "refuse",
    message: Annotated[str, typer.Option("--message", "-m", help="What to remember about it.")] = "",
    as_json: Json = False,
) -> None:
    """Insert rows into a group."""
    commit = find(name).insert(
        source,
        duplicates=duplicates,  # type: ignore[arg-type] # checked there, as what users write in Python is
        new_columns=new_columns,  # type: ignore[arg-type]
        missing_columns=missing_columns,  # type: ignore[arg-type]
        bad_rows=bad_rows,  # type: ignore[arg-type]
        message=message,
    )
    if as_json:
        print_json(commit.as_json())
        return
    aside = f", {commit.quarantined:,} put aside" if commit.quarantined else ""
    typer.echo(
        f"Commit {commit.number} of {name}: {commit.inserted:,} rows inserted, {commit.updated:,} updated, "
        f"{commit.unchanged:,} unchanged{aside}."
    )


def _print_commits(commits: list[Commit]) -> None:
    numbers = ("COMMIT", "INSERTED", "UPDATED", "DELETED")
    made = table(
        "COMMIT", "WHEN", "WHO", "WHAT", "INSERTED", "UPDATED", "DELETED", "FROM", right=numbers, shortened=("FROM",)
    )
    for one in commits:
        made.add_row(
            *(cell(each) for each in (one.number, f"{one.time:%Y-%m-%d %H:%M:%S}", one.user or MISSING, one.operation)),
            *(cell(f"{count:,}") for count in (one.inserted, one.updated, one.deleted)),
            cell(one.message or one.source),
        )
    print_table(made)


def _print_statistics(statistics: Statistics) -> None:
    console().print(cell(f"{statistics.group}, commit {statistics.commit}: {statistics.rows:,} rows", "bold"))
    headings = ("COLUMN", "VALUES", "NULLS", "DISTINCT", "MIN", "MEAN", "MEDIAN", "MAX", "STD")
    made = table(*headings, right=headings[1:])
    for row in figure_words(statistics):
        made.add_row(*(cell(word or MISSING) for word in row))
    print_table(made)
