"""Options that the commands of sharing have in common."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="For programs.")]
Network = Annotated[
    str, typer.Option("--network", metavar="NAME", help="The network; may be left out if the project knows only one.")
]
Publisher = Annotated[str, typer.Argument(metavar="PUBLISHER", help="A key, the beginning of one, or its name here.")]
Publication = Annotated[
    str, typer.Argument(metavar="NAME[@PUBLISHER][:VERSION]", help="`higgs`, `higgs:3` or `higgs@alice:3`.")
]
