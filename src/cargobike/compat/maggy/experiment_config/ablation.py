"""Maggy's `AblationConfig`, by the path of 1.0."""

from __future__ import annotations

from cargobike.compat.maggy.config.ablation import AblationConfig

__all__ = ["AblationConfig"]
