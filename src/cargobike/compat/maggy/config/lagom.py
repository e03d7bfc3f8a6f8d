"""The base of Maggy's configurations."""

from __future__ import annotations

__all__ = ["LagomConfig"]


class LagomConfig:
    """What every configuration says.

    Args:
        name: The experiment's name.
        description: A sentence about it.
        hb_interval: How often Maggy's workers called; ours report at once.
    """

    def __init__(self, name: str, description: str = "", hb_interval: int = 1) -> None:
        self.name = name
        self.description = description
        self.hb_interval = hb_interval
