"""`cargobike export`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cargobike.cli.printing import print_json
from cargobike.experiments.commands.naming import ExperimentId
from cargobike.experiments.finding import find_experiment
from cargobike.experiments.results.mlflow_tree import write_mlflow
from cargobike.store.history.archive import write_archive


class Format(StrEnum):
    """What to write."""

    ARCHIVE = "archive"
    MLFLOW = "mlflow"


def export(
    experiment: ExperimentId,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write; for MLflow a folder (mlruns).")],
    *,
    kind: Annotated[Format, typer.Option("--format", help="What to write.")] = Format.ARCHIVE,
    checkpoints: Annotated[bool, typer.Option(help="Whether the archive holds checkpoints.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write an experiment into one file that `cargobike import` reads elsewhere, or in MLflow's format."""
    folder = find_experiment(experiment, with_checkpoints=checkpoints)
    if kind is Format.MLFLOW:
        path = write_mlflow(folder, target)
    else:
        path = target / f"{folder.id}.zip" if target.is_dir() else target
        write_archive(folder, path, with_checkpoints=checkpoints)
    if as_json:
        print_json({"id": folder.id, "path": str(path), "format": kind.value})
    else:
        typer.echo(f"{folder.id} is in {path}.")
