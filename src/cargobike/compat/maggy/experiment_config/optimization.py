"""Maggy's `OptimizationConfig`, by the path of 1.0."""

from __future__ import annotations

from cargobike.compat.maggy.config.hyperparameter_optimization import OptimizationConfig

__all__ = ["OptimizationConfig"]
