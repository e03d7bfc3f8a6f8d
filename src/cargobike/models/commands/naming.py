"""How commands are told which version is meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from cargobike.cli.completing import fitting_in_project
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.store.files import project


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, lambda: _references(incomplete), incomplete)


def _complete_name(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, _names, incomplete)


def _complete_alias(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, _aliases, incomplete)


def _names() -> Iterator[tuple[str, str]]:
    for name in Catalogue(project.current()).names():
        yield name, "a model"


def _references(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield names, and once a name is complete, its aliases and versions, the newest first."""
    name = incomplete.replace("@", ":").partition(":")[0]
    yield from _names()
    if len(name) == len(incomplete):
        return
    model = Catalogue(project.current()).find(name)
    if model is not None:
        for alias, version in sorted(model.state.aliases.items()):
            yield f"{name}@{alias}", f"version {version}"
        for version in range(model.versions, 0, -1):
            if version not in model.state.removed:
                yield f"{name}:{version}", "a version"


def _aliases() -> Iterator[tuple[str, str]]:
    for model in Catalogue(project.current()).models():
        for alias in model.state.aliases:
            yield alias, "an alias"
    yield "champion", "an alias"


Version = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A version: `name:3`, `name@champion`, or `name` for the newest.",
        autocompletion=_complete,
    ),
]
Versions = Annotated[
    list[str],
    typer.Argument(metavar="MODEL...", help="Versions: `name:3`, `name@champion`.", autocompletion=_complete),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The model's name.", autocompletion=_complete_name)]
OptionalName = Annotated[
    str, typer.Argument(metavar="[NAME]", help="A model, to list its versions.", autocompletion=_complete_name)
]
AliasName = Annotated[
    str, typer.Argument(metavar="ALIAS", help="An alias, such as champion.", autocompletion=_complete_alias)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
