"""`cargobike tensorboard`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.commands.opening import synced_index
from cargobike.experiments.finding import experiment_ids, find_experiment
from cargobike.experiments.tensorboard.curves_view import gather, write_curves
from cargobike.experiments.tensorboard.server import TensorboardServer
from cargobike.store.files import project


def tensorboard(
    experiments: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Which; left out, the newest ones side by side.")
    ] = None,
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="How many of the newest.")] = 20,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on; there is no password.")] = "127.0.0.1",
    files: Annotated[bool, typer.Option("--files", help="Only write the event files, and print where.")] = False,
) -> None:
    """Show experiments in TensorBoard until Ctrl-C."""
    folders = _find(experiments or [], limit)
    if files:
        for folder in folders:
            typer.echo(write_curves(folder))
        return
    logdir = folders[0].tensorboard
    if len(folders) > 1 or not experiments:
        with synced_index() as index:
            names = dict(index.names())
        logdir = gather(project.current().tensorboard, [(names.get(one.id, ""), one) for one in folders])
    with TensorboardServer(logdir, folders, host=host, port=port) as board:
        typer.echo(f"TensorBoard at {board.address()} (Ctrl-C ends it)")
        try:
            board.wait()
        except KeyboardInterrupt:
            typer.echo("")


def _find(texts: list[str], limit: int) -> list[ExperimentFolder]:
    if texts:
        return [find_experiment(text) for text in texts]
    ids = experiment_ids()[-limit:]
    if not ids:
        raise NotFoundError(f"There are no experiments in {project.current().root} to show.")
    return [project.current().experiment(one) for one in ids]
