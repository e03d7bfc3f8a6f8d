"""Maggy's `TfDistributedConfig`, by the path of 1.0."""

from __future__ import annotations

from cargobike.compat.maggy.config.tf_distributed import TfDistributedConfig

__all__ = ["TfDistributedConfig"]
