"""Options that the commands of sharing have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cargobike.core import settings

Json = Annotated[bool, typer.Option("--json", help="For programs.")]
Network = Annotated[
    str, typer.Option("--network", metavar="NAME", help="The network; may be left out if the project knows only one.")
]
Publisher = Annotated[str, typer.Argument(metavar="PUBLISHER", help="A key, the beginning of one, or its name here.")]
Publication = Annotated[
    str, typer.Argument(metavar="NAME[@PUBLISHER][:VERSION]", help="`higgs`, `higgs:3` or `higgs@alice:3`.")
]
Peers = Annotated[
    list[str] | None, typer.Option("--peer", metavar="HOST:PORT", help="A member's address; may be repeated.")
]
SecretFile = Annotated[
    Path | None, typer.Option("--secret-file", metavar="FILE", help=f"Holds the secret; else ${settings.SHARE_SECRET}.")
]
MembersFile = Annotated[
    Path | None, typer.Option("--members", metavar="FILE", help="Keys of all members, one in each line.")
]
