"""`cargobike tensorboard`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.terminal import neutralized
from cargobike.core.errors import CargobikeError, NotFoundError, StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.commands.naming import complete_experiment
from cargobike.experiments.commands.opening import synced_index
from cargobike.experiments.finding import experiment_ids, find_experiment
from cargobike.experiments.tensorboard.curves_view import gather, write_curves
from cargobike.experiments.tensorboard.server import TensorboardServer
from cargobike.store.files import project


def tensorboard(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Which; left out, the newest ones side by side.",
            autocompletion=complete_experiment,
        ),
    ] = None,
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="How many of the newest.")] = 20,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on; there is no password.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name to answer to, as behind a proxy.")
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="Only write the event files, and print where.")] = False,
) -> None:
    """Show experiments in TensorBoard until Ctrl-C."""
    folders = _find(experiments or [], limit)
    if files:
        _write_files(folders)
        return
    logdir = folders[0].tensorboard
    if len(folders) > 1 or not experiments:
        with synced_index() as index:
            names = dict(index.names())
        logdir = gather(project.current().tensorboard, [(names.get(one.id, ""), one) for one in folders])
    with TensorboardServer(logdir, folders, host=host, port=port, allow_hosts=allow_host or ()) as board:
        typer.echo(f"TensorBoard at {board.address()} (Ctrl-C ends it)")
        try:
            board.wait()
        except KeyboardInterrupt:
            typer.echo("")


def _write_files(folders: list[ExperimentFolder]) -> None:
    """Write the event files of each; one that cannot be read does not keep the others from it."""
    problems = []
    for folder in folders:
        try:
            typer.echo(write_curves(folder))
        except CargobikeError as error:
            problems.append(f"{folder.id}: {error}")
    if len(problems) == len(folders):
        raise StoreError("\n".join(problems))
    for problem in problems:
        typer.secho(neutralized(problem), fg="yellow", err=True)


def _find(texts: list[str], limit: int) -> list[ExperimentFolder]:
    if texts:
        return [find_experiment(text) for text in texts]
    ids = experiment_ids()[-limit:]
    if not ids:
        raise NotFoundError(f"There are no experiments in {project.current().root} to show.")
    return [project.current().experiment(one) for one in ids]
