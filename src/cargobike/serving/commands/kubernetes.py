"""`cargobike kubernetes`: deployments on a cluster, in the words of those on one machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer

from cargobike.cli.printing import cell, console, print_json
from cargobike.serving.kubernetes import applying
from cargobike.serving.kubernetes.cluster import Cluster
from cargobike.serving.kubernetes.seeing import ClusterStatus

kubernetes = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_WAIT_S = 900.0

Name = Annotated[str, typer.Argument(metavar="NAME", help="The deployment.")]
Context = Annotated[str, typer.Option(help="Which context of the kubeconfig; by default the current one.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Which namespace; by default the context's.")]
Wait = Annotated[float, typer.Option("--wait", help="How many seconds to wait until it is ready; 0 to return at once.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@kubernetes.command("status")
def status(name: Name, *, context: Context = "", namespace: Namespace = "", as_json: Json = False) -> None:
    """Show how a deployment on a cluster is doing."""
    with open_cluster(context, namespace) as cluster:
        _print(applying.status(cluster, name), as_json=as_json)


@kubernetes.command("rollback")
def rollback(name: Name, *, context: Context = "", namespace: Namespace = "", wait_s: Wait = _WAIT_S) -> None:
    """Go back to the version that ran before."""
    with open_cluster(context, namespace) as cluster:
        applying.rollback(cluster, name)
        finish(cluster, name, wait_s)


@kubernetes.command("scale")
def scale(
    name: Name,
    replicas: Annotated[int, typer.Argument(min=0, help="How many pods; with an autoscaler, at least so many.")],
    *,
    context: Context = "",
    namespace: Namespace = "",
    wait_s: Wait = _WAIT_S,
) -> None:
    """Run another number of pods."""
    with open_cluster(context, namespace) as cluster:
        applying.scale(cluster, name, replicas)
        finish(cluster, name, wait_s)


@kubernetes.command("rm")
def rm(
    name: Name,
    *,
    context: Context = "",
    namespace: Namespace = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a deployment from a cluster; its Secrets stay."""
    with open_cluster(context, namespace) as cluster:
        if not yes:
            typer.confirm(f"Delete {name} from the namespace {cluster.namespace} of {cluster.server}?", abort=True)
        for line in applying.remove(cluster, name):
            console().print(cell(f"deleted {line}"))


def finish(cluster: Cluster, name: str, wait_s: float = _WAIT_S) -> None:
    """Wait until a deployment is ready, and show it."""
    if wait_s > 0:
        applying.wait(cluster, name, wait_s, tell=lambda line: console().print(cell(line), style="dim"))
    _print(applying.status(cluster, name), as_json=False)


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
