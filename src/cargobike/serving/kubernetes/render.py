"""Manifests of a deployment, as plain dicts: what Kubernetes or KServe is to run. Nothing is read or written here."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Final, Literal

import msgspec

from cargobike.serving.kubernetes.asked import SPECIFICATION, Asked, check_asked, in_pod
from cargobike.serving.kubernetes.pods import Manifest, labels, pod_spec, selector

Target = Literal["kubernetes", "kserve"]
MODEL: Final = "cargobike.dev/model"
"""The annotation that says which version is served."""
_SCALE_METRICS: Final = {"concurrency": "concurrency", "requests": "rps", "queue": "concurrency"}


def render(asked: Asked, target: Target = "kubernetes") -> list[Manifest]:
    """Return the objects of a deployment, in the order in which they are to be created.

    For `kubernetes`: a ConfigMap, a Deployment, a Service, a PodDisruptionBudget, and a HorizontalPodAutoscaler if the
    number of replicas may change. For `kserve`: the ConfigMap and an InferenceService. Secrets are only referred to.

    Raises:
        InvalidInputError: If a cluster could not run it.
    """
    check_asked(asked)
    config_map = _config_map(asked)
    if target == "kserve":
        return [config_map, _inference_service(asked, config_map["metadata"]["name"])]
    scaling = asked.specification.scaling
    objects = [config_map, _deployment(asked, config_map["metadata"]["name"]), _service(asked), _budget(asked)]
    return [*objects, _autoscaler(asked)] if scaling.most > max(1, scaling.least) else objects


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
            "metadata": {"labels": labels(asked), "annotations": _annotations(asked)},
            "spec": pod_spec(asked, config_map),
        },
    }
    if specification.scaling.most <= max(1, specification.scaling.least):
        spec["replicas"] = max(1, specification.scaling.least)  # else the autoscaler decides
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(asked, annotations=_annotations(asked)),
        "spec": spec,
    }


def _service(asked: Asked) -> Manifest:
    port = {"name": "http", "port": 443 if asked.specification.tls_certificate else 80, "targetPort": "http"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(asked),
        "spec": {"type": "ClusterIP", "selector": selector(asked), "ports": [{**port, "protocol": "TCP"}]},
    }


def _budget(asked: Asked) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(asked),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(asked)}},
    }


def _autoscaler(asked: Asked) -> Manifest:
    scaling = asked.specification.scaling
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(asked),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": asked.name},
            "minReplicas": max(1, scaling.least),
            "maxReplicas": scaling.most,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": asked.cpu_target},
                    },
                }
            ],
            # More load is answered at once; less only when it lasts, as on one machine.
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 0},
                "scaleDown": {"stabilizationWindowSeconds": min(3600, math.ceil(scaling.window_s))},
            },
        },
    }


def _inference_service(asked: Asked, config_map: str) -> Manifest:
    specification = asked.specification
    scaling = specification.scaling
    pod = pod_spec(asked, config_map, container="kserve-container")
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": _metadata(asked, annotations=_annotations(asked)),
        "spec": {
            "predictor": {
                "minReplicas": scaling.least,
                "maxReplicas": scaling.most,
                "scaleMetric": _SCALE_METRICS[scaling.by],
                "scaleTarget": max(1, round(scaling.target)),
                "timeout": math.ceil(specification.limits.deadline_s),
                "annotations": _annotations(asked),
                "labels": labels(asked),
                **pod,
            }
        },
    }
