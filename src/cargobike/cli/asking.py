"""Asking a person before something is deleted: one option and one question for all commands."""

from __future__ import annotations

from typing import Annotated

import typer

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
"""The option by which a command is told not to ask."""


def confirm(question: str, *, yes: bool, as_json: bool = False) -> None:
    """Ask, unless `--yes` was given; a command ends here if the answer is no.

    Raises:
        BadParameter: If a program reads the output, so that nothing can be asked.
    """
    if yes:
        return
    if as_json:
        raise typer.BadParameter("--json cannot ask; give --yes as well")
    typer.confirm(question, abort=True)
