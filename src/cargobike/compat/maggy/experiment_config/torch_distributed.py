"""Maggy's `TorchDistributedConfig`, by the path of 1.0."""

from __future__ import annotations

from cargobike.compat.maggy.config.torch_distributed import TorchDistributedConfig

__all__ = ["TorchDistributedConfig"]
