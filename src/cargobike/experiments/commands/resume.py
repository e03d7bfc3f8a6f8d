"""`cargobike resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cargobike.experiments import front as experiment
from cargobike.experiments.commands.naming import ExperimentId
from cargobike.experiments.commands.run import tell


def resume(
    which: ExperimentId,
    *,
    num_trials: Annotated[int | None, typer.Option(min=1, help="How many trials in all.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, help="How many at once; 0 runs all in this process. [default: as before]"),
    ] = None,
    space: Annotated[Path | None, typer.Option(help="File of another space to go on in.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")] = False,
) -> None:
    """Go on with an experiment that was lost or stopped, or add trials to it."""
    result = experiment.resume(which, num_trials=num_trials, workers=workers, space=space, quiet=quiet or as_json)
    tell(result, as_json=as_json)
