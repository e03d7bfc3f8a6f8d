"""What objects of a cluster say about a deployment; pure, and in the words of deployments on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from cargobike.serving.kubernetes.render import MODEL

Object = dict[str, Any]

State = Literal["starting", "serving", "releasing", "stopping", "stopped"]


class Trouble(msgspec.Struct, frozen=True):
    """A pod that is not ready, and what it says."""

    pod: str
    words: str


class PodStatus(msgspec.Struct, frozen=True):
    """One pod: `ready`, `starting` or `ending`."""

    name: str
    model: str
    state: Literal["ready", "starting", "ending"]
    restarts: int = 0


class Progress(msgspec.Struct, frozen=True):
    """How far a cluster has come with what was asked for last."""

    is_done: bool
    gave_up: bool
    is_mixed: bool
    """Whether pods of before are still there."""
    words: str


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a deployment on a cluster is doing.

    Attributes:
        state: `starting` until the first pod is ready, `releasing` while another version is brought in, `serving`,
            `stopped` if there are to be no pods.
        model: The version that was asked for last.
        previous: The version before it; empty if there was none.
        ready: How many pods of that version take requests.
        wanted: How many there are to be.
        pods: All pods.
        revisions: What ran, the newest first.
        troubles: Pods that are not ready, and why.
    """

    name: str
    state: State
    model: str
    image: str
    previous: str = ""
    ready: int = 0
    wanted: int = 0
    pods: tuple[PodStatus, ...] = ()
    revisions: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.state}",
            f"  model     {self.model}, image {self.image}",
            f"  replicas  {self.ready} ready of {self.wanted} wanted",
        ]
        lines += [f"  before    {self.previous}"] if self.previous else []
        return "\n".join([*lines, *(f"  {trouble.pod}: {trouble.words}" for trouble in self.troubles)])


def progress_of(deployment: Object) -> Progress:
    """Return how far the cluster has come, as `kubectl rollout status` judges it."""
    wanted = int(deployment["spec"].get("replicas", 1))
    status = deployment.get("status") or {}
    updated, ready, total = (int(status.get(key) or 0) for key in ("updatedReplicas", "readyReplicas", "replicas"))
    available = int(status.get("availableReplicas") or 0)
    is_seen = int(status.get("observedGeneration") or 0) >= int(deployment["metadata"].get("generation") or 0)
    words = f"{min(updated, ready)} of {wanted} pods are updated and ready"
    if total > updated:
        words += f", {total - updated} of before are still there"
    if not is_seen:
        words = "the cluster has not seen it yet"
    given_up = [
        str(condition.get("message") or condition.get("reason"))
        for condition in status.get("conditions") or []
        if is_seen
        and (
            (condition.get("reason") == "ProgressDeadlineExceeded" and condition.get("status") == "False")
            or (condition.get("type") == "ReplicaFailure" and condition.get("status") == "True")
        )
    ]
    is_done = is_seen and updated == total == available == wanted and ready >= wanted
    is_mixed = not is_seen or total > updated
    return Progress(is_done, bool(given_up) and not is_done, is_mixed, "; ".join([words, *given_up]))


def status_of(deployment: Object, pods: Sequence[Object], history: Sequence[Object] = ()) -> ClusterStatus:
    """Return how a deployment is doing.

    Args:
        deployment: The Deployment.
        pods: Its pods.
        history: Its ReplicaSets, the newest revision first.
    """
    template = deployment["spec"]["template"]
    model = _model_of(template)
    progress = progress_of(deployment)
    seen = tuple(_pod(pod) for pod in pods)
    ready = sum(pod.state == "ready" for pod in seen)
    wanted = int(deployment["spec"].get("replicas", 1))
    state: State = "serving"
    if deployment["metadata"].get("deletionTimestamp"):
        state = "stopping"
    elif not wanted:
        state = "stopping" if seen else "stopped"
    elif not ready:
        state = "starting"
    elif progress.is_mixed:
        state = "releasing"
    revisions = tuple(_model_of(one["spec"]["template"]) for one in history)
    return ClusterStatus(
        name=deployment["metadata"]["name"],
        state=state,
        model=model,
        image=template["spec"]["containers"][0]["image"],
        previous=revisions[1] if len(revisions) > 1 else "",
        ready=sum(pod.state == "ready" and pod.model == model for pod in seen),
        wanted=wanted,
        pods=seen,
        revisions=revisions,
        troubles=troubles(pods, deployment),
    )


def troubles(pods: Sequence[Object], deployment: Object) -> tuple[Trouble, ...]:
    """Return the pods that are not ready, and why, as far as they say."""
    unready = [pod for pod in pods if _state(pod) == "starting"]
    if unready or not pods:
        return tuple(Trouble(pod["metadata"]["name"], _why(pod)) for pod in unready)
    wanted = int(deployment["spec"].get("replicas", 1))
    name = deployment["metadata"]["name"]
    return (Trouble(name, f"{wanted - len(pods)} pods are not created yet"),) if len(pods) < wanted else ()


def _why(pod: Object) -> str:
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or []:
        state = container.get("state") or {}
        for kind in ("waiting", "terminated"):
            if words := _words(state.get(kind) or {}):
                return words
        last = (container.get("lastState") or {}).get("terminated") or {}
        if not container.get("ready") and container.get("restartCount"):
            return f"restarted {container['restartCount']} times; {_words(last) or 'it ended'}"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") != "True":
            return f"no place: {condition.get('message') or condition.get('reason')}"
    return "it runs, and is not ready" if status.get("phase") == "Running" else str(status.get("phase") or "pending")


def _words(state: Object) -> str:
    parts = [str(state[key]) for key in ("reason", "message") if state.get(key)]
    if state.get("exitCode"):
        parts.append(f"exit code {state['exitCode']}")
    return ": ".join(parts)[:300]


def _pod(pod: Object) -> PodStatus:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    restarts = sum(int(one.get("restartCount") or 0) for one in statuses)
    return PodStatus(pod["metadata"]["name"], _model_of(pod), _state(pod), restarts)


def _state(pod: Object) -> Literal["ready", "starting", "ending"]:
    if pod["metadata"].get("deletionTimestamp"):
        return "ending"
    conditions = (pod.get("status") or {}).get("conditions") or []
    is_ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return "ready" if is_ready else "starting"


def _model_of(template: Object) -> str:
    return str((template["metadata"].get("annotations") or {}).get(MODEL, ""))
