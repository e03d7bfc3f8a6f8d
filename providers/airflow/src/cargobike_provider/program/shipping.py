"""Registers models, deploys them and rolls deployments to other versions."""

from __future__ import annotations

import os
import time
from typing import Any, Final

from cargobike import models, serving
from cargobike.errors import DeploymentError, NotFoundError, WaitError

from .answers import deployment_reference, model_reference
from .experiments import find_trial
from .functions import load_function
from .origins import tags_of

Arguments = dict[str, Any]
Origin = dict[str, Any]

_LOOK_S: Final = 0.2
_SERVING: Final = {"serving", "releasing", "starting"}


def register_model(arguments: Arguments, origin: Origin) -> Any:
    """Register a version, promote it if that is asked for, and return a reference to it."""
    options = dict(arguments["options"])
    options["tags"] = [*(options.get("tags") or ()), *tags_of(origin)]
    model = load_function(arguments["model"]) if arguments.get("model") else None
    if arguments.get("factory"):
        options["factory"] = load_function(arguments["factory"])
    trial = find_trial(arguments["trial"]) if arguments.get("trial") else None
    if trial is not None and model is None and not arguments.get("files"):
        # What a train function kept is registered as it is, and once: tags come behind, or it would be packed anew.
        tags = options.pop("tags")
        given = {key: value for key, value in options.items() if value}
        version = models.register(arguments["name"], trial=trial, **given).tag(*tags)
    else:
        version = models.register(arguments["name"], model, trial=trial, files=arguments.get("files"), **options)
    promotion = None
    if arguments.get("promote_to"):
        promotion = version.promote(arguments["promote_to"], when=arguments.get("when") or "")
    reference = model_reference(version)
    if promotion is not None:
        reference["alias"], reference["remark"] = arguments["promote_to"], promotion.remark
    return reference


def deploy_model(arguments: Arguments, origin: Origin) -> Any:
    """Serve a model, detached; a deployment that serves already is rolled to the version, if that is asked for."""
    name, model, options = arguments["name"], _model(arguments["model"]), dict(arguments["options"])
    for hook in ("before", "after"):
        if options.get(hook):
            options[hook] = load_function(options[hook])
    if options.get("replicas") is not None and isinstance(options["replicas"], list):
        options["replicas"] = tuple(options["replicas"])
    wanted = models.get(model)
    try:
        there = serving.deployment(name)
        status = there.status()
    except NotFoundError:
        there = None
    if there is not None and status.state in _SERVING:
        if arguments["if_serving"] == "fail":
            raise DeploymentError(f"The deployment {name} serves {status.model} (version {status.version}) already.")
        if status.version != wanted.version:
            there.roll(model, timeout_s=arguments["timeout_s"])
        return deployment_reference(there)
    # Its processes outlive this task; Airflow would wait for what is written to the pipes of the task.
    deployment = serving.deploy(
        name, model, detach=True, **{key: one for key, one in options.items() if one is not None}
    )
    _announce(deployment.token)
    return deployment_reference(deployment)


def roll_deployment(arguments: Arguments, _origin: Origin) -> Any:
    """Bring another version into a deployment, and wait until it serves alone."""
    deployment = serving.deployment(arguments["name"])
    state = deployment.status().state
    if state not in _SERVING:
        raise DeploymentError(
            f"The deployment {arguments['name']} is {state}, so there is nothing to roll. Start it "
            f"(`cargobike deployments start {arguments['name']}`), or deploy it with a CargobikeDeployOperator."
        )
    model = _model(arguments["model"])
    wanted = models.get(model).version
    plan = serving.Plan(**arguments["watch"]) if arguments.get("watch") else None
    give_up_at = time.monotonic() + arguments["timeout_s"]
    if deployment.status().version != wanted:
        deployment.roll(
            f"{model.split('@')[0].split(':')[0]}:{wanted}",
            canary=arguments["canary"],
            shadow=arguments["shadow"],
            watch=plan,
            timeout_s=arguments["timeout_s"],
        )
    while arguments["wait"] and (status := deployment.status()).candidate:
        if time.monotonic() > give_up_at:
            deployment.rollback(reason="not decided in time")
            raise WaitError(
                f"Version {wanted} of {arguments['name']} was neither promoted nor taken back within "
                f"{arguments['timeout_s']:g} s; it was taken back."
            )
        time.sleep(_LOOK_S)
    status = deployment.status()
    if arguments["wait"] and status.version != wanted:
        raise DeploymentError(
            f"{arguments['name']} serves version {status.version}: version {wanted} was taken back. {status.last_error}"
        )
    return deployment_reference(deployment)


def _model(reference: Any) -> str:
    """Return a reference to a version as text; tasks hand on dicts."""
    return str(reference["id"] if isinstance(reference, dict) else reference)


def _announce(token: str) -> None:
    """Keep a token that was made out of logs and XComs: say where it can be set."""
    if token and not os.environ.get("CARGOBIKE_SERVE_TOKEN"):
        print("A token was made for this deployment and is not shown here; give one with token=… to know it.")  # noqa: T201
