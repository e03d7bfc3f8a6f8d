"""`cargobike features delete | compact | vacuum`: what changes the past of a group."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.asking import Yes, confirm
from cargobike.cli.printing import print_json
from cargobike.features.commands.naming import Json, Name, find


def delete(
    name: Name,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Keys, of groups whose key is one column.")],
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete all rows of keys, at all times; `vacuum --older-than 0` deletes them from the past too."""
    group = find(name)
    confirm(f"Delete all rows of {', '.join(keys)} from {group.name}?", yes=yes, as_json=as_json)
    is_whole = group.definition.key_types[:1] in {(kind,) for kind in ("int8", "int16", "int32", "int64")}
    commit = group.delete([int(key) if is_whole and key.lstrip("-").isdigit() else key for key in keys])
    if as_json:
        print_json(commit.as_json())
    else:
        typer.echo(f"Deleted {commit.deleted:,} rows from {group.name}.")


def compact(name: Name, as_json: Json = False) -> None:
    """Put the small files of a group together; no row changes."""
    commit = find(name).compact()
    if as_json:
        print_json(commit.as_json())
    else:
        typer.echo(f"The newest commit of {name} is {commit.number}.")


def vacuum(
    name: Name,
    older_than: Annotated[str, typer.Option(help="How much of the past stays readable: 30d; 0 for none.")] = "7d",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete files that only older states of a group need; these can no longer be read then."""
    group = find(name)
    confirm(f"Delete what only states of {group.name} older than {older_than} need?", yes=yes, as_json=as_json)
    count = group.vacuum(older_than)
    if as_json:
        print_json({"group": group.name, "deleted_files": count})
    else:
        typer.echo(f"Deleted {count} files of {group.name}.")
