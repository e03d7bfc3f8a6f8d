"""`cargobike migrate`."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from cargobike.cli.printing import print_json
from cargobike.cli.terminal import neutralized
from cargobike.compat.as_is.program import read_program
from cargobike.compat.migrating.script import Change
from cargobike.compat.migrating.script import migrate as migrate_source
from cargobike.core.errors import InvalidInputError


def migrate(
    script: Annotated[str, typer.Argument(help="A script (.py) or notebook (.ipynb) for an older library.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the new script there.")
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Print what changes, not the whole script.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: code and changes.")] = False,
) -> None:
    """Print a script in our own names; what could not be translated is listed and runs on under its old name."""
    code = read_program(script).code
    migrated = migrate_source(code)
    if output is not None:
        try:
            with output.open("x", encoding="utf-8") as file:
                file.write(migrated.code)
        except FileExistsError as error:
            raise InvalidInputError(f"{output} exists already; name another file.") from error
    if as_json:
        print_json({"code": migrated.code, "changes": [msgspec.to_builtins(change) for change in migrated.changes]})
        return
    if diff:
        lines = difflib.unified_diff(code.splitlines(True), migrated.code.splitlines(True), script, "rewritten")
        typer.echo(neutralized("".join(lines)), nl=False)
    elif output is None:
        typer.echo(migrated.code, nl=False)
    done = len(migrated.changes) - len(migrated.left)
    typer.echo(neutralized(f"{script}: {done} of {len(migrated.changes)} uses of older names rewritten"), err=True)
    for change in migrated.left:
        typer.echo(neutralized(_line(script, change)), err=True)


def _line(script: str, change: Change) -> str:
    new = f" ours is {change.new};" if change.new else ""
    return f"{script}:{change.line}: {change.old}:{new} {change.remark or 'rewrite it by hand'}"
