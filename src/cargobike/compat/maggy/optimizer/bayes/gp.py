"""Maggy's Gaussian process."""

from __future__ import annotations

from typing import Any

from cargobike.compat.maggy.optimizer.built_in import BuiltIn
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.lazy import load
from cargobike.search.optimizers.optimizer import AbstractOptimizer as Own

__all__ = ["GP"]


class GP(BuiltIn):
    """A Gaussian process, through Optuna; `cargobike.optimizers.GaussianProcess`.

    Args:
        async_strategy: Ours keeps parallel trials apart by itself.
        **others: Choices of Maggy's that Optuna makes by itself.
    """

    def __init__(self, async_strategy: str = "impute", **others: Any) -> None:
        super().__init__()
        if others.get("pruner"):
            raise InvalidInputError("GP has no pruner here; use TPE(pruner='hyperband', …), which has a model as well.")

    def own(self) -> Own:
        """Return the Gaussian process of Optuna."""
        made: Own = load("cargobike.optimizers:GaussianProcess")()
        return made
