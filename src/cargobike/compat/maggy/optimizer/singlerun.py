"""Maggy's "no optimizer": a function without a space is run as often as there are trials."""

from __future__ import annotations

from cargobike.compat.maggy.optimizer.built_in import BuiltIn
from cargobike.search.optimizers.listed import Listed

__all__ = ["SingleRun"]


class SingleRun(BuiltIn):
    """Runs a function without parameters; `experiment.launch(train, params={})`."""

    def own(self) -> Listed:
        """Return the list of runs, each without parameters."""
        return Listed([{}])
