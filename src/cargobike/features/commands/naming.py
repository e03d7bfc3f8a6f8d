"""How commands are told which group is meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from cargobike.cli.completing import fitting_in_project
from cargobike.core.errors import InvalidInputError
from cargobike.features.groups.finding import group, list_groups
from cargobike.features.groups.group import Group
from cargobike.store.files import project


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, _names, incomplete)


def _names() -> Iterator[tuple[str, str]]:
    for one in list_groups(project.current()):
        yield one.name, one.definition.description


Name = Annotated[str, typer.Argument(metavar="GROUP", help="A name, or `name:version`.", autocompletion=_complete)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def find(text: str) -> Group:
    """Return the group that a user means by `name` or `name:version`.

    Raises:
        NotFoundError: If there is none.
    """
    name, colon, version = text.partition(":")
    if colon and not version.isdigit():
        raise InvalidInputError(f"{text!r} was given; write the name of a group, or name:version, such as teams:2.")
    return group(name, int(version) if colon else None)
