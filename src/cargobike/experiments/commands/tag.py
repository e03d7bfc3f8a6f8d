"""`cargobike tag`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.printing import print_json
from cargobike.cli.terminal import neutralized
from cargobike.experiments.commands.naming import ExperimentId, complete_tag
from cargobike.experiments.finding import find_experiment
from cargobike.store.history.annotations import annotate


def tag(
    experiment: ExperimentId,
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="TAG...", help="Tags to add.", autocompletion=complete_tag)
    ] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Take a tag away; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Add tags to an experiment, take some away, or list them."""
    folder = find_experiment(experiment)
    annotations = annotate(folder, add=tags or (), remove=remove or ())
    if as_json:
        print_json({"id": folder.id, "tags": annotations.tags})
    else:
        typer.echo(neutralized(f"{folder.id}: {', '.join(annotations.tags) or 'no tags'}"))
