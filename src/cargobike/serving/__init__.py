"""Serve models: an endpoint that batches, scales, rolls and falls back, on this machine or on Kubernetes.

`deploy` serves a model, `deployment` finds one that is served, `list_deployments` finds all, `start` starts one again;
`read_log` reads what a deployment was asked and has answered. The modules of this room are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.serving.deploying import deploy, deployment, list_deployments, start
    from cargobike.serving.facts import Plan
    from cargobike.serving.handle import Deployment
    from cargobike.serving.inference_log.reading import read_log
    from cargobike.serving.specification import Limits, Logging, Scaling, Specification
    from cargobike.serving.status import ReplicaStatus, Status, Traffic, VersionFigures

__all__ = [
    "Deployment",
    "Limits",
    "Logging",
    "Plan",
    "ReplicaStatus",
    "Scaling",
    "Specification",
    "Status",
    "Traffic",
    "VersionFigures",
    "deploy",
    "deployment",
    "list_deployments",
    "read_log",
    "start",
]

_DOOR = "cargobike.serving.deploying"
_SPECIFICATION = "cargobike.serving.specification"
_STATUS = "cargobike.serving.status"
_SOURCES = {
    "Deployment": "cargobike.serving.handle",
    "Limits": _SPECIFICATION,
    "Logging": _SPECIFICATION,
    "Plan": "cargobike.serving.facts",
    "ReplicaStatus": _STATUS,
    "Scaling": _SPECIFICATION,
    "Specification": _SPECIFICATION,
    "Status": _STATUS,
    "Traffic": _STATUS,
    "VersionFigures": _STATUS,
    "deploy": _DOOR,
    "deployment": _DOOR,
    "list_deployments": _DOOR,
    "read_log": "cargobike.serving.inference_log.reading",
    "start": _DOOR,
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="serving")


def __dir__() -> list[str]:
    return __all__
