"""`cargobike tokens`: give out tokens for the dashboard and its API, each with a role."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.printing import age, console, print_json, print_table, table, utc
from cargobike.store.files import project
from cargobike.ui.web.roles import Role
from cargobike.ui.web.tokens import TokenBook

tokens = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whom or what it is for: `ada`, `nightly-build`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@tokens.command("create")
def create(
    name: Name,
    role: Annotated[
        Role,
        typer.Option(help="read: look at everything; run: also start, stop, release, tag; administer: everything."),
    ] = Role.READ,
    as_json: Json = False,
) -> None:
    """Make a token, and print it: it is kept nowhere, so that it can be read only now."""
    token = TokenBook(project.current()).create(name, role)
    if as_json:
        print_json({"name": name, "role": role.value, "token": token})
        return
    typer.echo(token)
    typer.echo(
        f"It has the role {role.value!r} at every server of this project; show it on the page /login, or send it as "
        "Authorization: Bearer.",
        err=True,
    )


@tokens.command("ls")
def ls(as_json: Json = False) -> None:
    """List the tokens that were given out: their names and roles."""
    given = TokenBook(project.current()).all()
    if as_json:
        print_json([{"name": one.name, "role": one.role.value, "made_at": utc(one.made_at)} for one in given])
        return
    if not given:
        console().print("No tokens were given out: cargobike tokens create NAME --role read makes one.")
        return
    made = table("TOKEN", "ROLE", "MADE")
    for one in given:
        made.add_row(one.name, one.role.value, age(one.made_at))
    print_table(made)


@tokens.command("revoke")
def revoke(name: Name) -> None:
    """Take a token back; from the next request on it is not accepted."""
    TokenBook(project.current()).revoke(name)
    console().print(f"The token {name} is revoked.")
