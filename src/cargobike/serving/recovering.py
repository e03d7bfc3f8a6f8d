"""Finds what a step of a pipeline had done to deployments when its process was killed.

Supervisors outlive that process: what it had asked them for is done, or is being done and waited for here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from cargobike.core.errors import DeploymentError, WaitError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.modelling import model_keeper
from cargobike.serving import deploying
from cargobike.serving.handle import Deployment
from cargobike.serving.record import find_record, folder_of, read_record
from cargobike.serving.status import Status
from cargobike.serving.supervising.finding import find_version
from cargobike.store.files.locking import holds_lock

_LOOK_S: Final = 0.1
_BEYOND_S: Final = 60.0
_PATIENCE_S: Final = 600.0


def open_deployment(name: str, project: ProjectFolder) -> Deployment:
    """Return the handle of a deployment of any project, whether it runs or not."""
    find_record(project, name)
    return Deployment(name, project)


def recover_deploy(token: str, project: ProjectFolder, name: str, model: Any, **said: Any) -> Deployment | None:
    """Return the deployment that a step made, once it serves; one that was lost since is made again.

    A supervisor that was just being started takes a moment until its journal tells which step it belongs to; it is
    found by its refusal to have another beside it.
    """
    if (deployment := _deployed_by(token, project, name)) is not None:
        return deployment
    if not isinstance(model, str) and not hasattr(model, "predictor"):
        model = model_keeper().made_by(token, name, project) or model
    try:
        return deploying.deploy(name, model, **said)
    except DeploymentError:
        if (deployment := _deployed_by(token, project, name)) is not None:
            return deployment
        raise


def recover_start(token: str, project: ProjectFolder, name: str, **_: Any) -> Deployment | None:
    """Return the deployment that a step started, once it serves."""
    return _deployed_by(token, project, name)


def recover_roll(token: str, project: ProjectFolder, deployment: Deployment, model: Any, **said: Any) -> Status | None:
    """Return how a deployment is doing into which a step has begun to bring a version."""
    if not _has_asked(token, project, deployment):
        return None
    is_watched = bool(said.get("canary") or said.get("shadow"))
    status = _await(deployment, lambda status: not status.candidate or (is_watched and _is_routed(status)))
    if status.candidate and (judge := said.get("judge")) is not None:
        return deployment.judged(judge, said.get("timeout_s", _PATIENCE_S))
    if is_watched or status.version == find_version(_reference(model)).version:
        return status
    return None  # it could not be loaded: the step is made again, and says why


def recover_promote(_: str, __: ProjectFolder, deployment: Deployment, **said: Any) -> Status | None:
    """Return how a deployment is doing whose watched version got all requests."""
    if not deployment.status().candidate:
        return deployment.status()
    try:
        return deployment.promote(**said)
    except DeploymentError:  # it is being promoted
        return _await(deployment, lambda status: not status.candidate)


def recover_rollback(token: str, project: ProjectFolder, deployment: Deployment, **_: Any) -> Status | None:
    """Return how a deployment is doing that a step has begun to take back."""
    if not _has_asked(token, project, deployment):
        return None
    return _await(deployment, lambda status: not status.candidate)


def _deployed_by(token: str, project: ProjectFolder, name: str) -> Deployment | None:
    record = read_record(folder_of(project, name))
    if record is None or token not in record.steps:
        return None
    deployment = Deployment(name, project)
    if not holds_lock(deployment.folder):
        return deployment if record.is_stopped and record.current else None
    within_s = record.specification.limits.load_s + _BEYOND_S
    status = _await(deployment, lambda status: status.state != "starting", within_s)
    return deployment if status.state in {"serving", "releasing"} else None


def _has_asked(token: str, project: ProjectFolder, deployment: Deployment) -> bool:
    return token in find_record(project, deployment.name).steps


def _is_routed(status: Status) -> bool:
    return status.candidate in status.routes or status.shadow == status.candidate


def _reference(model: Any) -> str:
    return model if isinstance(model, str) else f"{model.name}:{model.version}"


def _await(deployment: Deployment, is_so: Callable[[Status], bool], within_s: float = _PATIENCE_S) -> Status:
    give_up_at = time.monotonic() + within_s
    while not is_so(status := deployment.status()):
        if time.monotonic() > give_up_at:
            raise WaitError(
                f"{deployment.name} is {status.state} for {within_s:g} s; `cargobike deployments show "
                f"{deployment.name}` says more.",
                missing=[f"an end of what was begun in {deployment.name}"],
            )
        time.sleep(_LOOK_S)
    return status
