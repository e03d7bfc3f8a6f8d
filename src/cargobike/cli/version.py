"""`cargobike version`."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from cargobike.cli.printing import print_json
from cargobike.core.version import __version__, version_line


def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"cargobike": __version__, "python": platform.python_version()})
    else:
        typer.echo(version_line())
