"""`cargobike horovodrun`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.compat.horovod.runner.launch import run_commandline

horovodrun = typer.Typer(add_completion=False, rich_markup_mode=None)

_AS_THEY_ARE = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}


@horovodrun.command("horovodrun", context_settings=_AS_THEY_ARE)
def _run(arguments: Annotated[list[str] | None, typer.Argument(metavar="[OPTIONS] PROGRAM …")] = None) -> None:
    """Run a program as several ranks on this machine: -np 2 python train.py; the options are those of Horovod."""
    raise typer.Exit(run_commandline(arguments or []))
