"""An InferenceService: the same container, run, routed to and scaled by KServe.

KServe has two modes. `Standard` makes a Deployment and scales by processor use. `Knative` scales to zero, and takes
fewer fields of a pod: what it refuses is said in another way here, or left to it.
"""

from __future__ import annotations

import math
from typing import Any, Final

from cargobike.serving.kubernetes.asked import PORT, Asked
from cargobike.serving.kubernetes.pods import Manifest, labels, pod_spec

_MODE: Final = "serving.kserve.io/deploymentMode"
_METRICS: Final = {"concurrency": "concurrency", "requests": "rps"}
_CONTAINER: Final = "kserve-container"


def inference_service(asked: Asked, config_map: str, metadata: dict[str, Any], annotations: dict[str, str]) -> Manifest:
    """Return the InferenceService of a deployment.

    Args:
        asked: The deployment.
        config_map: The ConfigMap with its specification.
        metadata: Name, place and labels.
        annotations: What the service and its pods say about themselves.
    """
    scaling = asked.specification.scaling
    is_knative = scaling.least == 0
    mode = {_MODE: "Knative"} if is_knative else {_MODE: "Standard", "serving.kserve.io/autoscalerClass": "hpa"}
    pod = pod_spec(asked, config_map, container=_CONTAINER)
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {**metadata, "annotations": {**annotations, **mode}},
        "spec": {
            "predictor": {
                "minReplicas": scaling.least,
                "maxReplicas": scaling.most,
                "scaleMetric": _METRICS[scaling.by] if is_knative else "cpu",
                "scaleTarget": max(1, round(scaling.target)) if is_knative else asked.cpu_target,
                "timeout": math.ceil(asked.specification.limits.deadline_s),
                "annotations": annotations,
                "labels": labels(asked),
                **(_as_knative_takes_it(pod) if is_knative else pod),
            }
        },
    }


def _as_knative_takes_it(pod: Manifest) -> Manifest:
    """Return a pod without what Knative decides itself: spreading, how long it may take to end, how it starts."""
    kept: Manifest = {key: pod[key] for key in ("volumes", "serviceAccountName", "imagePullSecrets") if key in pod}
    user = {key: value for key, value in pod["securityContext"].items() if key != "fsGroup"}
    (container,) = pod["containers"]
    changed = {
        **{key: value for key, value in container.items() if key not in {"lifecycle", "startupProbe"}},
        "ports": [{"name": "http1", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": _probe(container["readinessProbe"]),
        "livenessProbe": _probe(container["livenessProbe"]),
        "securityContext": {**user, **container["securityContext"]},
    }
    return {**kept, "containers": [changed]}


def _probe(probe: Manifest) -> Manifest:
    return {**probe, "httpGet": {**probe["httpGet"], "port": PORT}}
