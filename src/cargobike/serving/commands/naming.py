"""How commands are told which deployment is meant, and how many replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from cargobike.cli.completing import fitting_in_project
from cargobike.serving.deploying import list_deployments


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, _names, incomplete)


def _names() -> Iterator[tuple[str, str]]:
    for one in list_deployments():
        yield one.name, one.status().model


Name = Annotated[str, typer.Argument(metavar="NAME", help="The deployment.", autocompletion=_complete)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def bounds(text: str) -> tuple[int, int]:
    """Read `3`, or `1:4` for the fewest and the most.

    Example:
        >>> bounds("1:4")
        (1, 4)
    """
    least, colon, most = text.partition(":")
    if not least.isdigit() or (colon and not most.isdigit()):
        raise typer.BadParameter(f"{text!r} was given; write a number, or the fewest and the most, such as 1:4.")
    return int(least), int(most) if colon else max(1, int(least))


def read_resources(text: str) -> dict[str, str]:
    """Read `cpu=2,memory=4Gi`.

    Example:
        >>> read_resources("cpu=2,memory=4Gi")
        {'cpu': '2', 'memory': '4Gi'}
    """
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    if wrong := ["".join(pair) for pair in pairs if not pair[0] or not pair[2]]:
        raise typer.BadParameter(f"{wrong[0]!r} was given; write names and quantities, such as cpu=2,memory=4Gi.")
    return {name: value for name, _, value in pairs}
