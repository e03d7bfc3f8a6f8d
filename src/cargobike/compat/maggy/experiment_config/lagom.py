"""Maggy's `LagomConfig`, by the path of 1.0."""

from __future__ import annotations

from cargobike.compat.maggy.config.lagom import LagomConfig

__all__ = ["LagomConfig"]
