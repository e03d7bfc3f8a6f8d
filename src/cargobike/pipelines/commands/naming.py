"""How commands are told which run is meant, and how a shell completes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from cargobike.cli.completing import fitting_in_project
from cargobike.pipelines.record import list_runs
from cargobike.store.files import project


def list_names() -> Iterator[tuple[str, str]]:
    """Yield what runs can be called, each with a few words about it."""
    for record in list_runs(project.current()):
        yield record.id, f"{record.pipeline}, {record.state}"


def complete_run(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the id of a run."""
    return fitting_in_project(ctx, lambda: [("last", "the newest run"), *list_names()], incomplete)


def complete_pipeline(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a pipeline that ran."""
    return fitting_in_project(
        ctx, lambda: ((record.pipeline, "a pipeline") for record in list_runs(project.current())), incomplete
    )


RunName = Annotated[
    str,
    typer.Argument(
        metavar="[RUN]", help="An id, its beginning, a pipeline's name, or `last`.", autocompletion=complete_run
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
