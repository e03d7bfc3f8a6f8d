"""Manifests of a deployment, as plain dicts: what Kubernetes or KServe is to run. Nothing is read or written here."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Final

import msgspec

from cargobike.serving.kubernetes.asked import GRPC_PORT, PORT, SPECIFICATION, Asked, Target, check_asked, in_pod
from cargobike.serving.kubernetes.kserve import inference_service
from cargobike.serving.kubernetes.pods import Manifest, labels, pod_spec, selector
from cargobike.serving.kubernetes.scaling import autoscaler

MODEL: Final = "cargobike.dev/model"
"""The annotation that says which version is served."""

_GRPC: Final[Manifest] = {
    "name": "grpc",
    "port": GRPC_PORT,
    "targetPort": "grpc",
    "protocol": "TCP",
    "appProtocol": "grpc",
}


def render(asked: Asked, target: Target = "kubernetes") -> list[Manifest]:
    """Return the objects of a deployment, in the order in which they are to be created.

    For `kubernetes`: a ConfigMap, a Deployment, a Service, a PodDisruptionBudget, and a HorizontalPodAutoscaler if the
    number of replicas may change; with gRPC another Service, without an address of its own. For `kserve`: the ConfigMap
    and an InferenceService. Secrets are only referred to.

    Raises:
        InvalidInputError: If a cluster could not run it.
    """
    check_asked(asked, target)
    config_map = _config_map(asked)
    name = config_map["metadata"]["name"]
    if target == "kserve":
        return [config_map, inference_service(asked, name, _metadata(asked), _annotations(asked))]
    objects = [config_map, _deployment(asked, name), _service(asked), _budget(asked)]
    objects += [_grpc_service(asked)] if asked.specification.grpc_port is not None else []
    return [*objects, autoscaler(asked, _metadata(asked))] if _is_scaled(asked) else objects


def _is_scaled(asked: Asked) -> bool:
    return asked.specification.scaling.most > asked.specification.scaling.least


def _metadata(asked: Asked, name: str = "", **more: Any) -> Manifest:
    place = {"namespace": asked.namespace} if asked.namespace else {}
    return {"name": name or asked.name, **place, "labels": labels(asked), **more}


def _annotations(asked: Asked) -> dict[str, str]:
    model = asked.specification.model.partition("@")[0].partition(":")[0]
    return {MODEL: f"{model}:{asked.specification.version}"}


def _config_map(asked: Asked) -> Manifest:
    """Return the specification under a name that follows from it: so that pods of before keep theirs."""
    text = msgspec.json.format(msgspec.json.encode(in_pod(asked)), indent=2).decode()
    name = f"{asked.name}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(asked, name),
        "immutable": True,
        "data": {SPECIFICATION: text},
    }


def _deployment(asked: Asked, config_map: str) -> Manifest:
    specification = asked.specification
    spec: Manifest = {
        "selector": {"matchLabels": selector(asked)},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": math.ceil(specification.limits.load_s) + 600,
        # A pod ends only when another has become ready in its place.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {
            "metadata": {"labels": labels(asked), "annotations": {**_annotations(asked), **_scraping(asked)}},
            "spec": pod_spec(asked, config_map),
        },
    }
    if not _is_scaled(asked):
        spec["replicas"] = specification.scaling.least  # else the autoscaler decides
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(asked, annotations=_annotations(asked)),
        "spec": spec,
    }


def _service(asked: Asked) -> Manifest:
    http: Manifest = {"name": "http", "port": 443 if asked.specification.tls_certificate else 80, "targetPort": "http"}
    ports = [{**http, "protocol": "TCP"}]
    ports += [_GRPC] if asked.specification.grpc_port is not None else []
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(asked),
        "spec": {"type": "ClusterIP", "selector": selector(asked), "ports": ports},
    }


def _grpc_service(asked: Asked) -> Manifest:
    """Return a name that stands for the addresses of all pods.

    A connection of gRPC lasts, and all its calls go to one pod; so it is the callers who spread them, and must know all
    pods. Calls can also go to the Service with an address, where each connection meets one of them.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(asked, f"{asked.name}-grpc"),
        "spec": {"type": "ClusterIP", "clusterIP": "None", "selector": selector(asked), "ports": [_GRPC]},
    }


def _scraping(asked: Asked) -> dict[str, str]:
    """Return what Prometheus looks for, by the convention of its charts; the token is its own to bring."""
    scheme = "https" if asked.specification.tls_certificate else "http"
    plain = {"scrape": "true", "path": "/metrics", "port": str(PORT), "scheme": scheme}
    return {f"prometheus.io/{key}": value for key, value in plain.items()}


def _budget(asked: Asked) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(asked),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(asked)}},
    }
