"""How commands name experiments and tags, and how a shell completes these words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from cargobike.cli.completing import fitting_in_project
from cargobike.cli.printing import age
from cargobike.experiments.commands.opening import synced_index

_MOST: Final = 200


def list_names() -> Iterator[tuple[str, str]]:
    """Yield what experiments of the project can be called, the newest first: `last`, names, ids."""
    with synced_index() as index:
        rows = index.experiments(limit=_MOST)
    for number, row in enumerate(rows):
        about = f"{row.state.value}, {age(row.started_at)}"
        if number == 0:
            yield "last", f"{row.name or row.id}, {about}"
        yield row.id, f"{row.name}, {about}" if row.name else about
    for row in reversed(rows):  # of several with one name the newest counts
        if row.name:
            yield row.name, f"{row.id}, {row.state.value}"


def complete_experiment(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the id or the name of an experiment."""
    return fitting_in_project(ctx, list_names, incomplete)


def complete_tag(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete a tag that some experiment has."""
    return fitting_in_project(ctx, _tags, incomplete)


def _tags() -> Iterator[tuple[str, str]]:
    with synced_index() as index:
        for row in index.experiments():
            yield from ((tag, "") for tag in row.tags)


ExperimentId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id, start or end of one, name, or `last`.", autocompletion=complete_experiment),
]
"""The argument of a command that names one experiment."""
