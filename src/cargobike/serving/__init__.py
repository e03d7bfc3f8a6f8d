"""Serve models: an endpoint that batches, scales, rolls and falls back, on this machine or on Kubernetes."""

from __future__ import annotations

__all__: list[str] = []
