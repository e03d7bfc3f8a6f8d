"""`cargobike import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cargobike.cli.printing import print_json
from cargobike.store.files import project
from cargobike.store.files.mirror import share_arrival
from cargobike.store.history.archive import MOST_BYTES, take_in


def import_(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="What `cargobike export` wrote.")],
    most_gb: Annotated[float, typer.Option("--most-gb", min=0, help="The most that it may hold.")] = MOST_BYTES / 1e9,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Take an exported experiment into this project."""
    folder = take_in(archive, project.prepare(), most_bytes=int(most_gb * 1e9))
    share_arrival(folder)
    if as_json:
        print_json({"id": folder.id, "path": str(folder.root)})
    else:
        typer.echo(f"{folder.id} is here; more: cargobike show {folder.id}")
