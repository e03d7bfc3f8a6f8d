"""`cargobike models export | import`: versions that leave a project and come into one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cargobike.cli.printing import cell, console, print_json
from cargobike.models.commands.naming import Json, Version
from cargobike.models.exchange.front import export_to, import_from


class _Format(StrEnum):
    CARGOBIKE = "cargobike"
    MLFLOW = "mlflow"


def export(
    version: Version,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A .tar, .tar.gz or .zip file, or a folder.")],
    form: Annotated[_Format, typer.Option("--format", help="What to write.")] = _Format.CARGOBIKE,
    as_json: Json = False,
) -> None:
    """Write a version into one file or a folder, or as a folder of MLflow."""
    target = export_to(version, path, format="mlflow" if form is _Format.MLFLOW else "cargobike")
    if as_json:
        print_json({"model": version, "path": str(target)})
    else:
        console().print(cell(f"{version} was written to {target}."))


def import_(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="What export wrote, or a folder of MLflow.")],
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="What to call it; by default what it was called.")] = "",
    as_json: Json = False,
) -> None:
    """Take a version from a file or folder into the project; its code is not trusted."""
    version = import_from(path, name)
    if as_json:
        print_json(version.as_json())
        return
    console().print(cell(f"{version.reference} ({version.flavour}, {version.fingerprint[:12]})"))
    if version.manifest.runs_code:
        console().print(cell("It runs code when it is loaded, and has to be trusted first: trust=True, or --trust."))
