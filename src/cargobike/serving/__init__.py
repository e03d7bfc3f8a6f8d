"""Serve models: an endpoint that batches, scales, rolls and falls back, on this machine or on Kubernetes.

`read_log` reads what a deployment was asked and has answered. The modules of this room are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.serving.inference_log.reading import read_log

__all__ = ["read_log"]

_SOURCES = {"read_log": "cargobike.serving.inference_log.reading"}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="serving")


def __dir__() -> list[str]:
    return __all__
