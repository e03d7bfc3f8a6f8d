"""Maggy's pruner."""

from __future__ import annotations

from cargobike.compat.maggy.pruner.hyperband import Hyperband

__all__ = ["Hyperband"]
