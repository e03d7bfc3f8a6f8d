"""`cargobike kubernetes`: deployments on a cluster, in the words of those on one machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from cargobike.cli.printing import cell, console, print_json
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.modelling import KeptModel
from cargobike.serving.kubernetes import applying
from cargobike.serving.kubernetes.asked import Asked
from cargobike.serving.kubernetes.cluster import Cluster
from cargobike.serving.kubernetes.render import Target, render
from cargobike.serving.kubernetes.seeing import ClusterStatus
from cargobike.serving.kubernetes.writing import as_yaml, write

kubernetes = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_WAIT_S = 900.0
_TARGETS: dict[str, Target] = {"kubernetes": "kubernetes", "kserve": "kserve"}

Name = Annotated[str, typer.Argument(metavar="NAME", help="The deployment.")]
Context = Annotated[str, typer.Option(help="Which context of the kubeconfig; by default the current one.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Which namespace; by default the context's.")]
Wait = Annotated[float, typer.Option("--wait", help="How many seconds to wait until it is ready; 0 to return at once.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@kubernetes.command("status")
def status(name: Name, *, context: Context = "", namespace: Namespace = "", as_json: Json = False) -> None:
    """Show how a deployment on a cluster is doing."""
    with _cluster(context, namespace) as cluster:
        _print(applying.status(cluster, name), as_json=as_json)


@kubernetes.command("rollback")
def rollback(name: Name, *, context: Context = "", namespace: Namespace = "", wait_s: Wait = _WAIT_S) -> None:
    """Go back to the version that ran before."""
    with _cluster(context, namespace) as cluster:
        applying.rollback(cluster, name)
        _finish(cluster, name, wait_s)


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
    with _cluster(context, namespace) as cluster:
        applying.scale(cluster, name, replicas)
        _finish(cluster, name, wait_s)


@kubernetes.command("rm")
def rm(
    name: Name,
    *,
    context: Context = "",
    namespace: Namespace = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a deployment from a cluster; its Secrets stay."""
    with _cluster(context, namespace) as cluster:
        if not yes:
            typer.confirm(f"Delete {name} from the namespace {cluster.namespace} of {cluster.server}?", abort=True)
        for line in applying.remove(cluster, name):
            console().print(cell(f"deleted {line}"))


def render_and_write(
    asked: Asked, model: KeptModel, target: str, output: Path | None, *, extras: tuple[str, ...] = ("serving",)
) -> None:
    """Do what `cargobike serve … --render` asks for: print manifests, or write all that an image needs.

    Raises:
        InvalidInputError: If there is no such target, or a cluster could not run it.
    """
    manifests = render(asked, read_target(target))
    if output is None:
        typer.echo(as_yaml(manifests), nl=False)
        return
    files = write(output, manifests, model, target=read_target(target), extras=extras)
    for file in files:
        console().print(cell(str(file)))
    console().print(cell(f"docker build --tag {asked.image} {output} && docker push {asked.image}"), style="dim")
    console().print(cell(f"kubectl apply --filename {files[0]}"), style="dim")


def apply_and_wait(
    asked: Asked, target: str = "kubernetes", *, context: str = "", namespace: str = "", wait_s: float = _WAIT_S
) -> None:
    """Do what `cargobike serve … --apply` asks for: create a deployment on a cluster, or roll it."""
    with _cluster(context, namespace or asked.namespace) as cluster:
        applying.apply(cluster, asked, render(asked, read_target(target)))
        if target == "kserve":
            console().print(cell(f"{asked.name} is asked for; kubectl get inferenceservice {asked.name} shows it."))
            return
        _finish(cluster, asked.name, wait_s)


def read_target(text: str) -> Target:
    """Return what manifests are for.

    Raises:
        InvalidInputError: If it is nothing that we know.
    """
    target = _TARGETS.get(text)
    if target is None:
        raise InvalidInputError(f"--render {text} was given; there is {' and '.join(_TARGETS)}.")
    return target


def _finish(cluster: Cluster, name: str, wait_s: float) -> None:
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
def _cluster(context: str, namespace: str) -> Iterator[Cluster]:
    cluster = Cluster.open(context=context, namespace=namespace)
    try:
        yield cluster
    finally:
        cluster.close()
