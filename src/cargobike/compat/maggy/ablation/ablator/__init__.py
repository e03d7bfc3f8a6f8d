"""Maggy's ablators: what makes trials of a study."""

from __future__ import annotations

from cargobike.compat.maggy.ablation.ablator.abstractablator import AbstractAblator
from cargobike.compat.maggy.ablation.ablator.loco import LOCO

__all__ = ["LOCO", "AbstractAblator"]
