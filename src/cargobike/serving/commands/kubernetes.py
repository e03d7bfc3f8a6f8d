"""`cargobike kubernetes`: deployments on a cluster, in the words of those on one machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer

from cargobike.cli.asking import Yes, confirm
from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.cli.terminal import neutralized
from cargobike.serving.kubernetes import applying
from cargobike.serving.kubernetes.cluster import Cluster
from cargobike.serving.kubernetes.seeing import ClusterStatus

kubernetes = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_WAIT_S = 900.0

Name = Annotated[str, typer.Argument(metavar="NAME", help="The deployment.")]
Context = Annotated[str, typer.Option(help="Which context of the kubeconfig; by default the current one.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Which namespace; by default the context's.")]
Wait = Annotated[
    float, typer.Option("--wait", min=0.0, help="How many seconds to wait until it is ready; 0 to return at once.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@kubernetes.command("ls")
def ls(*, context: Context = "", namespace: Namespace = "", as_json: Json = False) -> None:
    """List the deployments of a namespace that were made by Cargobike."""
    with open_cluster(context, namespace) as cluster:
        found = applying.list_deployments(cluster)
        if as_json:
            print_json([msgspec.to_builtins(one) for one in found])
            return
        if not found:
            words = f"There are none in the namespace {cluster.namespace} of {cluster.server}; "
            console().print(cell(f"{words}`cargobike serve MODEL --apply` makes one."))
            return
        made = table("DEPLOYMENT", "STATE", "MODEL", "BEFORE", "READY", "IMAGE", right=("READY",))
        for one in found:
            made.add_row(
                cell(one.name, "bold"),
                cell(one.state),
                cell(one.model),
                cell(one.previous),
                cell(f"{one.ready}/{one.wanted}"),
                cell(one.image),
            )
        print_table(made)


@kubernetes.command("show")
@kubernetes.command("status", hidden=True)
def show(name: Name, *, context: Context = "", namespace: Namespace = "", as_json: Json = False) -> None:
    """Show how a deployment on a cluster is doing."""
    with open_cluster(context, namespace) as cluster:
        _print(applying.status(cluster, name), as_json=as_json)


@kubernetes.command("logs")
def logs(
    name: Name,
    *,
    lines: Annotated[int, typer.Option("--lines", min=1, help="How many of each pod.")] = 50,
    context: Context = "",
    namespace: Namespace = "",
    as_json: Json = False,
) -> None:
    """Show what the pods of a deployment have printed last."""
    with open_cluster(context, namespace) as cluster:
        found = applying.logs(cluster, name, lines)
    if as_json:
        print_json(found)
        return
    for pod, text in found.items():
        typer.echo(neutralized(f"--- {pod}\n{text.rstrip()}"))


@kubernetes.command("rollback")
def rollback(
    name: Name, *, context: Context = "", namespace: Namespace = "", wait_s: Wait = _WAIT_S, as_json: Json = False
) -> None:
    """Go back to the version that ran before."""
    with open_cluster(context, namespace) as cluster:
        applying.rollback(cluster, name)
        finish(cluster, name, wait_s, as_json=as_json)


@kubernetes.command("scale")
def scale(
    name: Name,
    replicas: Annotated[int, typer.Argument(min=0, help="How many pods; with an autoscaler, at least so many.")],
    *,
    context: Context = "",
    namespace: Namespace = "",
    wait_s: Wait = _WAIT_S,
    as_json: Json = False,
) -> None:
    """Run another number of pods."""
    with open_cluster(context, namespace) as cluster:
        applying.scale(cluster, name, replicas)
        finish(cluster, name, wait_s, as_json=as_json)


@kubernetes.command("rm")
def rm(
    name: Name, *, context: Context = "", namespace: Namespace = "", yes: Yes = False, as_json: Json = False
) -> None:
    """Delete a deployment from a cluster; its Secrets stay."""
    with open_cluster(context, namespace) as cluster:
        question = f"Delete {name} from the namespace {cluster.namespace} of {cluster.server}?"
        confirm(question, yes=yes, as_json=as_json)
        deleted = applying.remove(cluster, name)
        if as_json:
            print_json({"deleted": deleted})
            return
        for line in deleted:
            console().print(cell(f"deleted {line}"))


def finish(cluster: Cluster, name: str, wait_s: float = _WAIT_S, *, as_json: bool = False) -> None:
    """Wait until a deployment is ready, and show it."""
    if wait_s > 0:
        tell = None if as_json else lambda line: console().print(cell(line), style="dim")
        applying.wait(cluster, name, wait_s, tell=tell)
    _print(applying.status(cluster, name), as_json=as_json)


def _print(status: ClusterStatus, *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(status))
    else:
        for line in str(status).splitlines():
            console().print(cell(line))


@contextmanager
def open_cluster(context: str, namespace: str) -> Iterator[Cluster]:
    """Open a cluster, and close it in the end."""
    cluster = Cluster.open(context=context, namespace=namespace)
    try:
        yield cluster
    finally:
        cluster.close()
