"""Maggy's configuration of an ablation study."""

from __future__ import annotations

from typing import Any

from cargobike.compat.maggy.config.lagom import LagomConfig

__all__ = ["AblationConfig"]


class AblationConfig(LagomConfig):
    """An ablation study.

    Args:
        ablation_study: What to leave out.
        ablator: `"loco"`, or an ablator of your own.
        direction: `"max"` or `"min"`.
        name: The experiment's name.
        description: A sentence about it.
        hb_interval: Means nothing here.
        model: What the train function gets as `model`.
        dataset: What it gets as `dataset`.
    """

    def __init__(
        self,
        ablation_study: Any,
        ablator: Any = "loco",
        direction: str = "max",
        name: str = "ablationStudy",
        description: str = "",
        hb_interval: int = 1,
        model: Any = None,
        dataset: Any = None,
    ) -> None:
        super().__init__(name, description, hb_interval)
        self.ablation_study = ablation_study
        self.ablator = ablator
        self.direction = direction
        self.model = model
        self.dataset = dataset
