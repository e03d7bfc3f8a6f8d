"""What is done with a deployment on a cluster, in the words of deployments on one machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from cargobike.core.errors import DeploymentError, NotFoundError, WaitError
from cargobike.serving.kubernetes.asked import Asked, how_to_make, object_name
from cargobike.serving.kubernetes.cluster import Cluster, Object
from cargobike.serving.kubernetes.pods import Manifest
from cargobike.serving.kubernetes.render import MODEL, render
from cargobike.serving.kubernetes.seeing import ClusterStatus, progress_of, status_of, troubles

REVISION: Final = "deployment.kubernetes.io/revision"
_HASH: Final = "pod-template-hash"
_POLL_S: Final = 0.5
_NAMED: Final = ("PodDisruptionBudget", "HorizontalPodAutoscaler", "Service", "InferenceService", "Deployment")


def apply(cluster: Cluster, asked: Asked, manifests: Sequence[Manifest] | None = None) -> None:
    """Create a deployment on a cluster, or roll it to what is asked now; returns at once.

    Raises:
        DeploymentError: If a Secret that it needs is not there, or the cluster does not allow it.
        InvalidInputError: If the cluster refuses it.
    """
    missing = [name for name in asked.secrets if cluster.get("Secret", name) is None]
    if missing:
        lines = "\n".join(f"  {how_to_make(name, asked, cluster.namespace)}" for name in missing)
        raise DeploymentError(f"Before {asked.name} can run, the namespace {cluster.namespace} needs:\n{lines}")
    wanted = manifests or render(asked)
    for manifest in wanted:
        cluster.apply(_with_pods_as_they_are(cluster, manifest))
    _forget_others(cluster, asked.name, wanted)
    _forget_configurations(cluster, asked.name)


def status(cluster: Cluster, name: str) -> ClusterStatus:
    """Return how a deployment on a cluster is doing.

    Raises:
        NotFoundError: If there is none with that name.
    """
    deployment = _find(cluster, name)
    labels = deployment["spec"]["selector"]["matchLabels"]
    return status_of(deployment, cluster.find("Pod", labels), _history(cluster, deployment))


def list_deployments(cluster: Cluster) -> list[ClusterStatus]:
    """Return how all deployments of a namespace are doing that were made here, by name."""
    found = cluster.find("Deployment", {"app.kubernetes.io/managed-by": "cargobike"})
    ours = sorted((one for one in found if MODEL in (one["metadata"].get("annotations") or {})), key=_name)
    return [
        status_of(one, cluster.find("Pod", one["spec"]["selector"]["matchLabels"]), _history(cluster, one))
        for one in ours
    ]


def logs(cluster: Cluster, name: str, lines: int = 50) -> dict[str, str]:
    """Return the last lines that each pod of a deployment has printed, by its name.

    Raises:
        NotFoundError: If there is no deployment with that name.
    """
    pods = cluster.find("Pod", _find(cluster, name)["spec"]["selector"]["matchLabels"])
    return {pod: cluster.log(pod, lines) for pod in sorted(_name(one) for one in pods)}


def rollback(cluster: Cluster, name: str) -> ClusterStatus:
    """Go back to what ran before, as `kubectl rollout undo` does; returns at once.

    Raises:
        DeploymentError: If nothing ran before.
    """
    deployment = _find(cluster, name)
    history = _history(cluster, deployment)
    if len(history) < 2:
        raise DeploymentError(f"{name} has run one version only, {_model(deployment)}; there is nothing to go back to.")
    template = history[1]["spec"]["template"]
    labels = {key: value for key, value in template["metadata"]["labels"].items() if key != _HASH}
    before = {**template, "metadata": {**template["metadata"], "labels": labels}}
    annotations = {**(deployment["metadata"].get("annotations") or {}), MODEL: _model_of(template)}
    steps = [
        {"op": "replace", "path": "/spec/template", "value": before},
        {"op": "add", "path": "/metadata/annotations", "value": annotations},
    ]
    cluster.patch("Deployment", deployment["metadata"]["name"], steps)
    return status(cluster, name)


def scale(cluster: Cluster, name: str, replicas: int) -> ClusterStatus:
    """Run as many pods as are asked for; with an autoscaler, at least so many."""
    deployment = _find(cluster, name)
    known = deployment["metadata"]["name"]
    autoscaler = cluster.get("HorizontalPodAutoscaler", known)
    if autoscaler is None:
        cluster.patch("Deployment", known, [{"op": "add", "path": "/spec/replicas", "value": replicas}])
        return status(cluster, name)
    steps = [{"op": "add", "path": "/spec/minReplicas", "value": replicas}]
    if replicas > autoscaler["spec"]["maxReplicas"]:
        steps.append({"op": "replace", "path": "/spec/maxReplicas", "value": replicas})
    cluster.patch("HorizontalPodAutoscaler", known, steps)
    return status(cluster, name)


def wait(
    cluster: Cluster,
    name: str,
    within_s: float,
    *,
    tell: Callable[[str], None] | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> ClusterStatus:
    """Return when all pods of a deployment are what was asked for last, and ready.

    Args:
        cluster: Where.
        name: The deployment.
        within_s: How long at most.
        tell: Called with a line whenever something has changed.
        pause: Waits; tests have one of their own.

    Raises:
        WaitError: When the time is over; names the pods that are not ready, and what they say.
        DeploymentError: If the cluster has given up, or a pod cannot start for a reason that does not pass.
    """
    give_up_at, last = time.monotonic() + within_s, ""
    while True:
        deployment = _find(cluster, name)
        progress = progress_of(deployment)
        if progress.is_done:
            return status(cluster, name)
        pods = cluster.find("Pod", deployment["spec"]["selector"]["matchLabels"])
        waiting = troubles(pods, deployment)
        if progress.gave_up:
            raise DeploymentError(f"{name} does not become ready: {progress.words}{_listed(waiting)}")
        if tell is not None and progress.words != last:
            last = progress.words
            tell(last)
        if time.monotonic() >= give_up_at:
            raise WaitError(
                f"{name} is not ready after {within_s:.0f} s: {progress.words}{_listed(waiting)}",
                missing=[one.pod for one in waiting],
            )
        pause(_POLL_S)


def remove(cluster: Cluster, name: str) -> list[str]:
    """Delete everything of a deployment but its Secrets; returns what was deleted.

    Raises:
        NotFoundError: If there is nothing with that name.
    """
    known = object_name(name)
    deleted = [f"{kind} {known}" for kind in _NAMED if _delete_if_known(cluster, kind, known)]
    if _is_ours(cluster.get("Service", f"{known}-grpc")) and cluster.delete("Service", f"{known}-grpc"):
        deleted.append(f"Service {known}-grpc")
    for config in _configurations(cluster, known):
        if cluster.delete("ConfigMap", config):
            deleted.append(f"ConfigMap {config}")
    if not deleted:
        raise NotFoundError(f"There is no deployment {name!r} in the namespace {cluster.namespace}.", wanted=name)
    return deleted


def _with_pods_as_they_are(cluster: Cluster, manifest: Manifest) -> Manifest:
    """Return a Deployment with as many pods as it has, where an autoscaler is to decide.

    A field that was applied before and is left out now goes back to its default, which would end all pods but one.
    """
    if manifest["kind"] != "Deployment" or "replicas" in manifest["spec"]:
        return manifest
    live = cluster.get("Deployment", manifest["metadata"]["name"])
    if live is None:
        return manifest
    return {**manifest, "spec": {**manifest["spec"], "replicas": max(1, int(live["spec"].get("replicas", 1)))}}


def _forget_others(cluster: Cluster, name: str, wanted: Sequence[Manifest]) -> None:
    """Delete what an earlier specification needed and this one does not: an autoscaler, a Service for gRPC."""
    kept = {(one["kind"], one["metadata"]["name"]) for one in wanted}
    if ("Deployment", name) not in kept:
        return
    for kind, one in (("HorizontalPodAutoscaler", name), ("Service", f"{name}-grpc")):
        if (kind, one) not in kept and _is_ours(cluster.get(kind, one)):
            cluster.delete(kind, one)


def _is_ours(one: Object | None) -> bool:
    labels = ((one or {}).get("metadata") or {}).get("labels") or {}
    return bool(labels.get("app.kubernetes.io/managed-by") == "cargobike")


def _delete_if_known(cluster: Cluster, kind: str, name: str) -> bool:
    try:
        return cluster.delete(kind, name)
    except DeploymentError:
        if kind == "InferenceService":  # a cluster without KServe has no such kind
            return False
        raise


def _find(cluster: Cluster, name: str) -> Object:
    deployment = cluster.get("Deployment", object_name(name))
    if deployment is None:
        raise NotFoundError(
            f"There is no deployment {name!r} in the namespace {cluster.namespace} of {cluster.server}.", wanted=name
        )
    return deployment


def _history(cluster: Cluster, deployment: Object) -> list[Object]:
    """Return the replica sets of a deployment, the newest revision first."""
    sets = cluster.find("ReplicaSet", deployment["spec"]["selector"]["matchLabels"])
    owned = [one for one in sets if _is_owned(one, deployment)]
    return sorted(owned, key=lambda one: -int((one["metadata"].get("annotations") or {}).get(REVISION, 0)))


def _is_owned(one: Object, deployment: Object) -> bool:
    owners = one["metadata"].get("ownerReferences") or []
    return any(owner.get("uid") == deployment["metadata"].get("uid") for owner in owners)


def _configurations(cluster: Cluster, name: str) -> list[str]:
    labels = {"app.kubernetes.io/instance": name, "app.kubernetes.io/managed-by": "cargobike"}
    return [one["metadata"]["name"] for one in cluster.find("ConfigMap", labels)]


def _forget_configurations(cluster: Cluster, name: str) -> None:
    """Delete the ConfigMaps that no revision which can be gone back to uses."""
    deployment = cluster.get("Deployment", name)
    if deployment is None:  # KServe makes deployments of its own
        return
    templates = [deployment, *_history(cluster, deployment)]
    used = {
        volume["configMap"]["name"]
        for one in templates
        for volume in one["spec"]["template"]["spec"].get("volumes") or []
        if "configMap" in volume
    }
    for config in _configurations(cluster, name):
        if config not in used:
            cluster.delete("ConfigMap", config)


def _name(one: Object) -> str:
    return str(one["metadata"]["name"])


def _model(deployment: Object) -> str:
    return _model_of(deployment["spec"]["template"])


def _model_of(template: Object) -> str:
    annotations: dict[str, Any] = template["metadata"].get("annotations") or {}
    return str(annotations.get(MODEL, ""))


def _listed(waiting: Sequence[Any]) -> str:
    return "".join(f"\n  {one.pod}: {one.words}" for one in waiting)
