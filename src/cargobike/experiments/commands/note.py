"""`cargobike note`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.printing import moment, print_json
from cargobike.cli.terminal import neutralized
from cargobike.experiments.commands.naming import ExperimentId
from cargobike.experiments.finding import find_experiment
from cargobike.store.history.annotations import annotate


def note(
    experiment: ExperimentId,
    text: Annotated[str, typer.Argument(help="What to write down; left out, all notes are printed.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write something down about an experiment, or print what was written."""
    folder = find_experiment(experiment)
    annotations = annotate(folder, note=text)
    if as_json:
        notes = [{"at": one.at, "by": one.by, "text": one.text} for one in annotations.notes]
        print_json({"id": folder.id, "notes": notes})
        return
    for one in annotations.notes[-1:] if text.strip() else annotations.notes:
        typer.echo(neutralized(f"{moment(one.at)} {one.by}: {one.text}"))
    if not annotations.notes:
        typer.secho(f"{folder.id} has no notes.", err=True, dim=True)
