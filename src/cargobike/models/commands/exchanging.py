"""`cargobike models export | import`: folders of MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cargobike.cli.printing import cell, console, print_json
from cargobike.models import exchanging
from cargobike.models.commands.naming import Json, Name, Version

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of MLflow.")]


def export(version: Version, folder: Folder) -> None:
    """Write a version as a folder of MLflow."""
    target = exchanging.export_mlflow(version, folder)
    console().print(cell(f"{version} is in {target}; mlflow.pyfunc.load_model({str(target)!r}) loads it."))


def import_(folder: Folder, name: Name, as_json: Json = False) -> None:
    """Register a folder of MLflow as the next version of a model; no code of it is run."""
    version = exchanging.import_mlflow(folder, name)
    if as_json:
        print_json(version.as_json())
        return
    console().print(cell(f"{version.reference} ({version.flavour}, {version.fingerprint[:12]})"))
    if version.manifest.runs_code:
        console().print(cell("Loading it runs code that is in its files, so that it has to be trusted first: --trust."))
