"""Maggy's ablation studies."""

from __future__ import annotations

from cargobike.compat.maggy.ablation.ablationstudy import AblationStudy

__all__ = ["AblationStudy"]
