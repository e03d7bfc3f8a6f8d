"""The autoscaler of a deployment: by processor use, or by the figures of `/metrics` where an adapter gives them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

from cargobike.serving.kubernetes.asked import Asked
from cargobike.serving.kubernetes.pods import Manifest

METRICS: Final = {
    "concurrency": "cargobike_rows_in_flight",
    "requests": "cargobike_requests_per_second",
    "queue": "cargobike_longest_wait_seconds",
}
"""What `scaling.by` is called among the metrics of pods; requests per second are the rate of a counter."""


def autoscaler(asked: Asked, metadata: dict[str, Any]) -> Manifest:
    """Return the HorizontalPodAutoscaler of a deployment."""
    scaling = asked.specification.scaling
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": asked.name},
            "minReplicas": scaling.least,
            "maxReplicas": scaling.most,
            "metrics": [_by_figures(asked) if asked.uses_metrics else _by_processors(asked)],
            # More load is answered at once; less only when it lasts, as on one machine.
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 0},
                "scaleDown": {"stabilizationWindowSeconds": min(3600, math.ceil(scaling.window_s))},
            },
        },
    }


def _by_processors(asked: Asked) -> Manifest:
    target = {"type": "Utilization", "averageUtilization": asked.cpu_target}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _by_figures(asked: Asked) -> Manifest:
    scaling = asked.specification.scaling
    target = {"type": "AverageValue", "averageValue": quantity(scaling.target)}
    return {"type": "Pods", "pods": {"metric": {"name": METRICS[scaling.by]}, "target": target}}


def quantity(value: float) -> str:
    """Return a number as Kubernetes writes it: whole, or in thousandths.

    Example:
        >>> quantity(32.0), quantity(0.25)
        ('32', '250m')
    """
    thousandths = max(1, round(Fraction(value) * 1000))
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"
