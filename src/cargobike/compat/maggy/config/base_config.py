"""Maggy's configuration of a single run."""

from __future__ import annotations

from cargobike.compat.maggy.config.lagom import LagomConfig

__all__ = ["BaseConfig"]


class BaseConfig(LagomConfig):
    """One tracked run of a function."""

    def __init__(self, name: str = "base", hb_interval: int = 1, description: str = "") -> None:
        super().__init__(name, description, hb_interval)
