"""`cargobike serve`."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cargobike.cli.printing import print_json
from cargobike.cli.terminal import is_terminal
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError
from cargobike.serving.commands.naming import bounds, read_resources
from cargobike.serving.commands.shipping import Shipping, ship
from cargobike.serving.deploying import deploy
from cargobike.serving.handle import Deployment
from cargobike.serving.kubernetes.echoing import Echo
from cargobike.serving.kubernetes.pod import read_specification, start_in_pod
from cargobike.serving.record import folder_of
from cargobike.serving.specification import Limits, Logging, Scaling, Specification
from cargobike.serving.status import Status, traffic_line
from cargobike.serving.supervising.finding import model_name
from cargobike.store.files import project

_LOOK_S: Final = 1.0


def serve(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="`digits@champion`, `digits:3`, or `digits` for the newest version.")
    ] = "",
    *,
    name: Annotated[str, typer.Option(help="The deployment's name. [default: the model's]")] = "",
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all, with a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 0,
    grpc_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Speak gRPC too, on this port; 0 for any that is free.")
    ] = None,
    replicas: Annotated[str, typer.Option(metavar="N|LEAST:MOST", help="How many processes predict.")] = "1",
    scale_by: Annotated[str, typer.Option(help="What is watched: concurrency, requests, queue.")] = "concurrency",
    target: Annotated[float, typer.Option(help="The value of that for which the number of replicas is right.")] = 32.0,
    view: Annotated[str, typer.Option(help="A feature view: requests hold keys, features are looked up.")] = "",
    batch: Annotated[int, typer.Option(min=1, help="The most rows that a replica gets at once.")] = Limits().batch,
    deadline: Annotated[float, typer.Option(metavar="SECONDS", help="How long a request may take.")] = 30.0,
    log: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of requests that is kept.")] = 1.0,
    token: Annotated[
        str, typer.Option(help=f"What callers must send; `new` makes one. [default: ${settings.SERVE_TOKEN}]")
    ] = "",
    tls_certificate: Annotated[str, typer.Option(metavar="FILE", help="Encrypt: the certificate.")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="Encrypt: its key.")] = "",
    trust: Annotated[bool, typer.Option("--trust", help="Run code of a model that was brought in.")] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Serve in the background.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; needs --detach.")] = False,
    render: Annotated[str, typer.Option(metavar="TARGET", help="Write manifests: kubernetes, kserve.")] = "",
    output: Annotated[Path | None, typer.Option(help="With --render: a folder with all that an image needs.")] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Run it on a cluster of Kubernetes, or roll it there.")
    ] = False,
    image: Annotated[str, typer.Option(help="With --render, --apply: the image. [default: MODEL:VERSION]")] = "",
    context: Annotated[str, typer.Option(help="With --apply: the context of the kubeconfig.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="With --render, --apply: the namespace.")] = "",
    environment: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --render, --apply: a variable of pods, whose value a Secret has."),
    ] = None,
    resources: Annotated[
        str, typer.Option(metavar="NAME=QUANTITY,…", help="With --render, --apply: what a pod needs.")
    ] = "",
    pod_metrics: Annotated[
        bool, typer.Option("--pod-metrics", help="With --render, --apply: scale by --scale-by, not by processor use.")
    ] = False,
    pull_model: Annotated[
        bool, typer.Option("--pull-model", help="With --render, --apply: pods take the model from the project.")
    ] = False,
    specification: Annotated[Path | None, typer.Option(hidden=True, help="In a pod: what to serve.")] = None,
    tokens: Annotated[Path, typer.Option(hidden=True, help="In a pod: a folder with tokens.")] = Path("tokens"),
    pull: Annotated[str, typer.Option(hidden=True, help="In a pod: the project that has the model.")] = "",
) -> None:
    """Serve a model until Ctrl-C, in the background, or on Kubernetes."""
    if specification is not None:
        logs = folder_of(project.prepare(), read_specification(specification).name).logs
        with _interrupted_by_signals(), Echo(logs, typer.echo):
            deployment = start_in_pod(specification, tokens, pull)
            status = deployment.status()
            typer.echo(f"{deployment.name} serves {status.model}, version {status.version}")
            _serve_until_signal(deployment)
        return
    if not model:
        raise typer.BadParameter("name a model: `cargobike serve digits@champion`")
    if as_json and not detach:
        raise typer.BadParameter("--json needs --detach")
    if bool(tls_certificate) != bool(tls_key):
        raise InvalidInputError("--tls-certificate and --tls-key need each other.")
    least, most = bounds(replicas)
    if render or apply:
        if token:
            raise InvalidInputError("--token: on a cluster the Secret NAME-tokens has them, and no manifest does.")
        asked = Specification(
            name=name or model_name(model),
            model=model,
            grpc_port=grpc_port,
            scaling=Scaling(least=least, most=most, by=scale_by, target=target),  # type: ignore[arg-type]
            limits=Limits(batch=batch, deadline_s=deadline),
            logging=Logging(sample=log),
            view=view,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            trust=trust,
            resources=read_resources(resources),
            environment=dict.fromkeys(environment or [], ""),
        )
        ship(asked, Shipping(render, output, apply, image, context, namespace, pull_model, pod_metrics))
        return
    for_clusters = {
        "--output": bool(output),
        "--image": bool(image),
        "--context": bool(context),
        "--namespace": bool(namespace),
        "--environment": bool(environment),
        "--resources": bool(resources),
        "--pod-metrics": pod_metrics,
        "--pull-model": pull_model,
    }
    if given := [name for name, is_given in for_clusters.items() if is_given]:
        raise InvalidInputError(f"{', '.join(given)}: for clusters only; say --render kubernetes, or --apply.")
    token = token or settings.take_serve_token()
    with _interrupted_by_signals():
        deployment = deploy(
            name or model_name(model),
            model,
            replicas=Scaling(least=least, most=most, by=scale_by, target=target),  # type: ignore[arg-type]
            host=host,
            port=port,
            grpc=grpc_port,
            view=view or None,
            limits={"batch": batch, "deadline_s": deadline},
            log=log,
            token=(True if token == "new" else token) or None,  # noqa: S105 - a word, not a secret
            tls=(tls_certificate, tls_key) if tls_certificate else None,
            trust=trust,
            detach=detach,
        )
        status = deployment.status()
        if as_json:
            print_json({**described(status), "token": deployment.token})
            return
        _say_how(deployment, status)
        if not detach:
            _serve_until_signal(deployment)


def _serve_until_signal(deployment: Deployment) -> None:
    try:
        _watch(deployment)
    finally:
        _end_line()
        typer.echo("Answering what is there, then ending …")
        deployment.stop()


def described(status: Status) -> dict[str, Any]:
    """Return a status as JSON has it."""
    fields = {field: getattr(status, field) for field in status.__struct_fields__}
    fields["replicas"] = [
        {field: getattr(replica, field) for field in replica.__struct_fields__} for replica in status.replicas
    ]
    fields["traffic"] = {field: getattr(status.traffic, field) for field in status.traffic.__struct_fields__}
    fields["figures"] = [
        {field: getattr(figures, field) for field in figures.__struct_fields__} for figures in status.figures
    ]
    return fields


def _say_how(deployment: Deployment, status: Status) -> None:
    typer.echo(f"{deployment.name} serves {status.model}, version {status.version}, at {status.url}")
    header = f" -H 'Authorization: Bearer {deployment.token}'" if deployment.token else ""
    typer.echo(f"  curl {status.url}/predict{header} -d '[ROW, ROW, …]'")
    if status.grpc_address:
        typer.echo(f"  {status.grpc_address} speaks gRPC")
    if deployment.token:
        typer.echo("  This is the only time that the token is shown.")
    typer.echo(f"  {status.url}/ is a page to try it; cargobike deployments show {deployment.name}")


def _watch(deployment: Deployment) -> None:
    """Show traffic until a signal comes, or until the deployment was stopped by another process."""
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(_LOOK_S)
            status = deployment.status()
            if status.state in {"stopped", "lost"}:
                _end_line()
                typer.echo(f"{deployment.name} was {status.state}.")
                return
            if is_terminal():
                line = f"{status.state}, version {status.version}, {status.ready} replicas, "
                sys.stdout.write(f"\r\x1b[2K{(line + traffic_line(status.traffic))[:160]}")
                sys.stdout.flush()


def _end_line() -> None:
    if is_terminal():
        sys.stdout.write("\n")


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end this as Ctrl-C does: what is served is drained."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
