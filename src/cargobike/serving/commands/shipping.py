"""`cargobike serve … --render` and `--apply`: a deployment for a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer

from cargobike.cli.printing import cell, console
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.looking_up import view_keeper
from cargobike.core.registering.modelling import KeptModel, model_keeper
from cargobike.serving.commands.naming import Name
from cargobike.serving.kubernetes.asked import Asked, Target, how_to_make, object_name
from cargobike.serving.kubernetes.render import render
from cargobike.serving.kubernetes.writing import as_yaml, write
from cargobike.serving.record import find_record
from cargobike.serving.specification import Specification
from cargobike.serving.supervising.finding import model_name
from cargobike.store.files import project
from cargobike.store.files.shared import shared_url
from cargobike.store.history.environment import without_credentials

_TARGETS: dict[str, Target] = {"kubernetes": "kubernetes", "kserve": "kserve"}
_STORAGE_EXTRAS = {"s3": "s3", "s3a": "s3", "s3n": "s3", "hdfs": "hdfs", "viewfs": "hdfs"}


class Shipping(NamedTuple):
    """What a command says about a cluster; `target` is empty if nothing is to be rendered."""

    target: str = ""
    output: Path | None = None
    apply: bool = False
    image: str = ""
    context: str = ""
    namespace: str = ""
    pulls_model: bool = False
    uses_metrics: bool = False


def ship(specification: Specification, shipping: Shipping) -> None:
    """Render a deployment, or run it on a cluster.

    Raises:
        InvalidInputError: If there is no such target, or a cluster could not run it.
        NotFoundError: If there is no such version of the model.
    """
    target = read_target(shipping.target or "kubernetes")
    model = model_keeper().get(specification.model)
    specification = msgspec.structs.replace(specification, version=model.version)
    here = project.current()
    asked = Asked(
        specification=specification,
        image=shipping.image or f"{object_name(specification.name)}:{model.version}",
        namespace=shipping.namespace,
        project_url=without_credentials(shared_url(here)),
        pulls_model=shipping.pulls_model,
        bound_groups=view_keeper().bound_to_host(specification.view, here) if specification.view else {},
        uses_metrics=shipping.uses_metrics,
    )
    if shipping.target:
        render_and_write(asked, model, target, shipping.output)
    if shipping.apply:
        apply_and_wait(asked, target, context=shipping.context)


def ship_deployment(
    name: Name,
    *,
    render: Annotated[str, typer.Option(metavar="TARGET", help="Write manifests: kubernetes, kserve.")] = "",
    output: Annotated[Path | None, typer.Option(help="With --render: a folder with all that an image needs.")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Run it on a cluster, or roll it there.")] = False,
    image: Annotated[str, typer.Option(help="The image. [default: NAME:VERSION]")] = "",
    context: Annotated[str, typer.Option(help="With --apply: the context of the kubeconfig.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="The namespace.")] = "",
    pod_metrics: Annotated[bool, typer.Option("--pod-metrics", help="Scale by our figures.")] = False,
    pull_model: Annotated[bool, typer.Option("--pull-model", help="Pods take the model from the project.")] = False,
) -> None:
    """Render a deployment of this machine for a cluster, or run it there: as it is, with the version that serves."""
    if not render and not apply:
        raise InvalidInputError("Say --render kubernetes, --render kserve, or --apply.")
    record = find_record(project.current(), name)
    version = record.current or record.specification.version
    reference = f"{model_name(record.specification.model)}:{version}"
    specification = msgspec.structs.replace(record.specification, model=reference, version=version)
    ship(specification, Shipping(render, output, apply, image, context, namespace, pull_model, pod_metrics))


def render_and_write(asked: Asked, model: KeptModel, target: Target, output: Path | None) -> None:
    """Print manifests, or write all that an image needs into a folder."""
    manifests = render(asked, target)
    if output is None:
        typer.echo(as_yaml(manifests), nl=False)
        return
    files = write(output, manifests, model, target=target, extras=_extras(asked))
    for file in files:
        console().print(cell(str(file)))
    console().print(cell(f"docker build --tag {asked.image} {output} && docker push {asked.image}"), style="dim")
    for secret in asked.secrets:
        console().print(cell(how_to_make(secret, asked, asked.namespace)), style="dim")
    console().print(cell(f"kubectl apply --filename {files[0]}"), style="dim")


def apply_and_wait(asked: Asked, target: Target = "kubernetes", *, context: str = "") -> None:
    """Create a deployment on a cluster, or roll it, and wait until it is ready."""
    # The client of the cluster is an extra, which only this needs.
    from cargobike.serving.commands.kubernetes import finish, open_cluster  # noqa: PLC0415
    from cargobike.serving.kubernetes import applying  # noqa: PLC0415

    with open_cluster(context, asked.namespace) as cluster:
        applying.apply(cluster, asked, render(asked, target))
        if target == "kserve":
            console().print(cell(f"{asked.name} is asked for; kubectl get inferenceservice {asked.name} shows it."))
            return
        finish(cluster, asked.name)


def read_target(text: str) -> Target:
    """Return what manifests are for.

    Raises:
        InvalidInputError: If it is nothing that we know.
    """
    target = _TARGETS.get(text)
    if target is None:
        raise InvalidInputError(f"--render {text} was given; there is {' and '.join(_TARGETS)}.")
    return target


def _extras(asked: Asked) -> tuple[str, ...]:
    specification = asked.specification
    extras = ["serving"]
    extras += ["grpc"] if specification.grpc_port is not None else []
    extras += ["kafka"] if specification.logging.kafka else []
    extras += ["features", "redis"] if specification.view else []
    storages = {_STORAGE_EXTRAS.get(url.partition("://")[0]) for url in (asked.project_url, specification.logging.url)}
    return (*extras, *sorted(storage for storage in storages if storage))
