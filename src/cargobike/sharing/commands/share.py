"""`cargobike share`."""

from __future__ import annotations

import typer

from cargobike.cli.printing import print_json
from cargobike.sharing.commands.options import Json
from cargobike.sharing.identity.keys import load_identity
from cargobike.store.files import project

share = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@share.callback()
def _share() -> None:
    """Publish, find and get datasets and models in a private network."""


@share.command("key")
def key(as_json: Json = False) -> None:
    """Print the key that this project publishes with; it is made if there is none."""
    publisher = load_identity(project.prepare()).publisher
    if as_json:
        print_json({"publisher": publisher})
    else:
        typer.echo(publisher)
