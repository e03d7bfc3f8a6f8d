"""`cargobike mcp`."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from cargobike.core import settings
from cargobike.core.registering.afar import RoleName
from cargobike.remote.mcp.running import Here, Runner, There
from cargobike.remote.mcp.serving import Session
from cargobike.remote.project import connect
from cargobike.store.files import project

_INSTRUCTIONS = (
    "Cargobike searches, trains, keeps, serves and watches models. {where} Start with list_objects or search; "
    "read_object and explain_* say more. {may}"
)
_MAY = {
    "read": "This session only reads: to launch or change something, ask the person to start it with --allow run.",
    "run": "This session may launch and change things, not remove them; say what you are about to launch.",
    "administer": "This session may do everything, also remove things for good; ask before you do that.",
}


def mcp(
    *,
    allow: Annotated[
        Literal["run", "administer"] | None,
        typer.Option(help="Let assistants launch and change things, or also remove them. [default: only read]"),
    ] = None,
    server: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Speak about the project of this server instead of one here.")
    ] = "",
) -> None:
    """Serve coding assistants over standard input and output: the Model Context Protocol."""
    role: RoleName = allow or "read"
    named = server or settings.server()
    runner: Runner
    if named:
        remote = connect(named)
        remote.about()
        runner, where = There(remote, role), f"The project is on the server {remote.connection.address}."
    else:
        folder = project.current()
        runner, where = Here(folder, role), f"The project is in {folder.root}."
    # What anything here prints would be taken for a message: it goes to standard error.
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        Session(runner, sys.stdin.buffer, target).serve(_INSTRUCTIONS.format(where=where, may=_MAY[role]))
    except KeyboardInterrupt:
        runner.close()
    finally:
        target.close()
