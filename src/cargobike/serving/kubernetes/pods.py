"""The pod that runs a deployment: one front and one replica, without privileges, ended without losing a request."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from cargobike.core import settings
from cargobike.serving.kubernetes.asked import (
    CONFIG,
    GRPC_PORT,
    LEAVE_S,
    PORT,
    PRE_STOP_S,
    PROJECT,
    SPECIFICATION,
    TLS,
    TOKENS,
    Asked,
)
from cargobike.serving.specification import Specification

Manifest = dict[str, Any]

_USER = 10001
_SCRATCH = "/tmp"  # noqa: S108 - a volume of the pod alone
_PROBE_S = 2


def labels(asked: Asked) -> dict[str, str]:
    """Return what the objects of a deployment carry."""
    return {
        **selector(asked),
        "app.kubernetes.io/component": "model-server",
        "app.kubernetes.io/managed-by": "cargobike",
        "app.kubernetes.io/version": str(asked.specification.version),
    }


def selector(asked: Asked) -> dict[str, str]:
    """Return what tells the pods of a deployment from all others; it can never change."""
    return {"app.kubernetes.io/name": "cargobike", "app.kubernetes.io/instance": asked.name}


def pod_spec(asked: Asked, config_map: str, container: str = "server") -> Manifest:
    """Return what a pod is.

    Args:
        asked: The deployment.
        config_map: The ConfigMap with its specification.
        container: The container's name.
    """
    specification = asked.specification
    spec: Manifest = {
        "automountServiceAccountToken": False,
        "containers": [_container(asked, container)],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": grace_s(specification),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(asked)},
            }
        ],
        "volumes": _volumes(asked, config_map),
    }
    if asked.service_account:
        spec["serviceAccountName"] = asked.service_account
    if asked.pull_secret:
        spec["imagePullSecrets"] = [{"name": asked.pull_secret}]
    return spec


def grace_s(specification: Specification) -> int:
    """Return how long a pod may take to end: it is taken out of the service, takes its leave, answers what it has."""
    inside = msgspec.structs.replace(specification.limits, leave_s=float(LEAVE_S))
    return PRE_STOP_S + math.ceil(inside.stop_s) + 10


def _container(asked: Asked, name: str) -> Manifest:
    specification = asked.specification
    return {
        "name": name,
        "image": asked.image,
        "args": _arguments(asked),
        "ports": _ports(specification),
        "env": [
            {"name": settings.PROJECT, "value": PROJECT},
            {"name": "HOME", "value": _SCRATCH},
            *(
                {"name": one, "valueFrom": {"secretKeyRef": {"name": f"{asked.name}-environment", "key": one}}}
                for one in sorted(specification.environment)
            ),
        ],
        "resources": _resources(specification),
        # A model may take minutes to load; until then the pod is neither ready nor dead.
        "startupProbe": _probe(specification, "/v2/health/ready", math.ceil(specification.limits.load_s / _PROBE_S)),
        "readinessProbe": _probe(specification, "/v2/health/ready", 2),
        "livenessProbe": {**_probe(specification, "/v2/health/live", 3), "periodSeconds": 10, "timeoutSeconds": 5},
        # Requests still come for a moment after a pod was told to end: the cluster tells those who send them meanwhile.
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(PRE_STOP_S)]}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "config", "mountPath": f"{CONFIG}/{SPECIFICATION}", "subPath": SPECIFICATION, "readOnly": True},
            {"name": "tokens", "mountPath": TOKENS, "readOnly": True},
            *([{"name": "tls", "mountPath": TLS, "readOnly": True}] if specification.tls_certificate else []),
            {"name": "deployments", "mountPath": f"{PROJECT}/deployments"},
            *([{"name": "models", "mountPath": f"{PROJECT}/models"}] if asked.pulls_model else []),
            {"name": "tmp", "mountPath": _SCRATCH},
        ],
    }


def _arguments(asked: Asked) -> list[str]:
    arguments = ["--specification", f"{CONFIG}/{SPECIFICATION}", "--tokens", TOKENS]
    return [*arguments, "--pull", asked.project_url] if asked.pulls_model else arguments


def _ports(specification: Specification) -> list[Manifest]:
    """Return the doors of the front. One probe is enough for both: they are one process, and gRPC is open first."""
    ports: list[Manifest] = [{"name": "http", "containerPort": PORT, "protocol": "TCP"}]
    if specification.grpc_port is not None:
        ports.append({"name": "grpc", "containerPort": GRPC_PORT, "protocol": "TCP"})
    return ports


def _resources(specification: Specification) -> Manifest:
    wanted = {"cpu": "1", "memory": "1Gi", **{key: str(value) for key, value in specification.resources.items()}}
    # Memory cannot be taken back, so what is asked for is what there is; processors that are idle may be used.
    return {"requests": wanted, "limits": {key: value for key, value in wanted.items() if key != "cpu"}}


def _probe(specification: Specification, path: str, failures: int) -> Manifest:
    scheme = "HTTPS" if specification.tls_certificate else "HTTP"
    return {
        "httpGet": {"path": path, "port": "http", "scheme": scheme},
        "periodSeconds": _PROBE_S,
        "timeoutSeconds": 2,
        "failureThreshold": failures,
    }


def _volumes(asked: Asked, config_map: str) -> list[Manifest]:
    tls = (
        [{"name": "tls", "secret": {"secretName": f"{asked.name}-tls"}}] if asked.specification.tls_certificate else []
    )
    return [
        {"name": "config", "configMap": {"name": config_map}},
        {"name": "tokens", "secret": {"secretName": asked.tokens}},
        *tls,
        {"name": "deployments", "emptyDir": {}},
        *([{"name": "models", "emptyDir": {}}] if asked.pulls_model else []),
        {"name": "tmp", "emptyDir": {}},
    ]
