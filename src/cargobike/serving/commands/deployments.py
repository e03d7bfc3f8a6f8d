"""`cargobike deployments`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.asking import confirm
from cargobike.cli.printing import cell, console, moment, print_json, print_table, table, utc
from cargobike.cli.terminal import neutralized
from cargobike.core.values.words import MISSING
from cargobike.serving.commands.log import log, tidy
from cargobike.serving.commands.naming import Json, Name, bounds
from cargobike.serving.commands.serve import described
from cargobike.serving.commands.shipping import ship_deployment
from cargobike.serving.deploying import deployment, list_deployments
from cargobike.serving.deploying import start as start_again
from cargobike.serving.facts import Plan
from cargobike.serving.status import Status

deployments = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

deployments.command("log")(log)
deployments.command("tidy")(tidy)
deployments.command("ship")(ship_deployment)

_MOMENTS_SHOWN = 15


@deployments.command("ls")
def ls(as_json: Json = False) -> None:
    """List the deployments of the project."""
    found = [one.status() for one in list_deployments()]
    if as_json:
        print_json([described(status) for status in found])
        return
    if not found:
        console().print("There are no deployments in this project; `cargobike serve MODEL` makes one.")
        return
    made = table("DEPLOYMENT", "STATE", "MODEL", "VERSION", "READY", "REQUESTS/S", "URL", right=("VERSION", "READY"))
    for status in found:
        made.add_row(
            cell(status.name, "bold"),
            cell(status.state),
            cell(status.model),
            cell(status.version or MISSING),
            cell(f"{status.ready}/{status.wanted}"),
            cell(f"{status.traffic.per_s:.1f}"),
            cell(status.url),
        )
    print_table(made)


@deployments.command("show")
def show(name: Name, as_json: Json = False) -> None:
    """Show one deployment: versions, replicas, traffic, what happened last."""
    one = deployment(name)
    status, history = one.status(), one.history()
    if as_json:
        moments = [{"at": utc(each.at), "text": each.text} for each in history]
        print_json({**described(status), "history": moments})
        return
    typer.echo(neutralized(str(status)))
    if status.replicas:
        made = table("REPLICA", "VERSION", "STATE", "MEMORY", right=("REPLICA", "VERSION", "MEMORY"))
        for replica in status.replicas:
            size = f"{replica.memory_bytes / 2**20:.0f} MiB" if replica.memory_bytes else MISSING
            made.add_row(cell(replica.replica), cell(replica.version), cell(replica.state), cell(size))
        print_table(made)
    for each in history[-_MOMENTS_SHOWN:]:
        console().print(cell(f"{moment(each.at)}  {each.text}"))


@deployments.command("roll")
def roll(
    name: Name,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="`digits:4`, or `digits@champion`.")],
    *,
    canary: Annotated[float, typer.Option(min=0.0, max=0.99, help="The share of requests that it gets at first.")] = 0,
    shadow: Annotated[bool, typer.Option("--shadow", help="Give it copies; compare, do not serve.")] = False,
    by: Annotated[str, typer.Option(metavar="FIELD", help="Share out by the values of a field (A/B).")] = "",
    requests: Annotated[int, typer.Option(min=1, help="Promote a canary after so many requests,")] = Plan().requests,
    watch: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="and after so long.")] = Plan().watch_s,
    as_json: Json = False,
) -> None:
    """Bring in another version without losing a request."""
    plan = Plan(requests=requests, watch_s=watch)
    _say(deployment(name).roll(model, canary=canary, shadow=shadow, by=by, watch=plan), as_json=as_json)


@deployments.command("promote")
def promote(name: Name, as_json: Json = False) -> None:
    """Give all requests to the version that is watched."""
    _say(deployment(name).promote(), as_json=as_json)


@deployments.command("rollback")
def rollback(name: Name, as_json: Json = False) -> None:
    """Take back what is being brought in, or go back to the version before."""
    _say(deployment(name).rollback(), as_json=as_json)


@deployments.command("scale")
def scale(
    name: Name,
    replicas: Annotated[str, typer.Argument(metavar="N|LEAST:MOST", help="How many replicas.")],
    as_json: Json = False,
) -> None:
    """Change how many replicas there are."""
    _say(deployment(name).scale(bounds(replicas)), as_json=as_json)


@deployments.command("logs")
def logs(
    name: Name,
    *,
    replica: Annotated[int | None, typer.Option(help="Only of this replica.")] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="The last so many of each process.")] = 50,
) -> None:
    """Print what the processes of a deployment wrote."""
    typer.echo(neutralized(deployment(name).logs(replica=replica, lines=lines), keep_colours=True))


@deployments.command("start")
def start(name: Name, as_json: Json = False) -> None:
    """Start a deployment again that was stopped or lost: the same version, the same port, in the background."""
    _say(start_again(name, detach=True).status(), as_json=as_json)


@deployments.command("stop")
def stop(name: Name) -> None:
    """Answer what is there, and end; `start` brings it back."""
    deployment(name).stop()
    typer.echo(f"{name} is stopped.")


@deployments.command("rm")
def rm(
    name: Name,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Stop a deployment, and delete its journal and its log."""
    one = deployment(name)
    confirm(f"Stop {name}, and delete everything it has kept, its log of requests too?", yes=yes)
    one.remove()
    typer.echo(f"{name} is gone.")


def _say(status: Status, *, as_json: bool) -> None:
    if as_json:
        print_json(described(status))
    else:
        typer.echo(neutralized(str(status)))
