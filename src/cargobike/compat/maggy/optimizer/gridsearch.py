"""Maggy's grid search."""

from __future__ import annotations

from cargobike.compat.maggy.optimizer.built_in import BuiltIn
from cargobike.search.optimizers.gridsearch import GridSearch as Own

__all__ = ["GridSearch"]


class GridSearch(BuiltIn):
    """Tries every combination; `cargobike.optimizers.GridSearch`."""

    def own(self) -> Own:
        """Return the grid search of ours."""
        return Own()
