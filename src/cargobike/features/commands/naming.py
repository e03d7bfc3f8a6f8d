"""How commands are told which group, view or training dataset is meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from cargobike.cli.completing import fitting_in_project
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest, nearest_names
from cargobike.features.datasets.record import read_datasets
from cargobike.features.groups.definitions import all_definitions
from cargobike.features.groups.finding import group, list_groups
from cargobike.features.groups.group import Group
from cargobike.features.views.record import read_views
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of

Kind = Literal["group", "view", "dataset"]
"""What `show` can show, in the order in which a name is looked for."""


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, _groups, incomplete)


def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a group, a view or a training dataset."""
    return fitting_in_project(ctx, _everything, incomplete)


def _groups() -> Iterator[tuple[str, str]]:
    for one in list_groups(project.current()):
        yield one.name, one.definition.description


def _everything() -> Iterator[tuple[str, str]]:
    storage = storage_of(project.current())
    yield from ((record.name, "training dataset") for record in read_datasets(storage))
    yield from ((record.name, "view") for record in read_views(storage))
    yield from _groups()


Name = Annotated[str, typer.Argument(metavar="GROUP", help="A name, or `name:version`.", autocompletion=_complete)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def find(text: str) -> Group:
    """Return the group that a user means by `name` or `name:version`.

    Raises:
        NotFoundError: If there is none.
    """
    return group(*named_version("group", text))


def named_version(kind: str, text: str) -> tuple[str, int | None]:
    """Return the name and the version that a user means by `name` or `name:version`.

    Raises:
        InvalidInputError: If the version is no number.
    """
    name, colon, version = text.partition(":")
    if colon and not version.isdigit():
        raise InvalidInputError(f"{text!r} was given; write the name of a {kind}, or name:version, such as teams:2.")
    return name, int(version) if colon else None


def kind_of(text: str) -> Kind:
    """Return what has a name: a group, else a view, else a training dataset.

    Raises:
        NotFoundError: If nothing has it; says which names are similar.
    """
    name, _ = named_version("group, view or training dataset", text)
    storage = storage_of(project.current())
    names: dict[Kind, set[str]] = {
        "group": {one.name for one in all_definitions(storage)},
        "view": {one.name for one in read_views(storage)},
        "dataset": {one.name for one in read_datasets(storage)},
    }
    for kind, known in names.items():
        if name in known:
            return kind
    close = sorted(set().union(*names.values()))
    raise NotFoundError(
        f"There is no feature group, view or training dataset {name!r} in {project.current().root}."
        f"{nearest(name, close)}",
        wanted=name,
        nearest=nearest_names(name, close),
    )
