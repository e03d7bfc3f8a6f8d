"""Maggy's random search."""

from __future__ import annotations

from cargobike.compat.maggy.optimizer.built_in import BuiltIn
from cargobike.search.optimizers.randomsearch import RandomSearch as Own

__all__ = ["RandomSearch"]


class RandomSearch(BuiltIn):
    """Draws at random, from any space; `cargobike.optimizers.RandomSearch`."""

    def own(self) -> Own:
        """Return the random search of ours."""
        return Own()

    def initialize(self) -> None:
        """Draw all trials ahead, as Maggy did: they lie in `trial_buffer`."""
        super().initialize()
        self.trial_buffer = []
        while (made := super().get_suggestion()) is not None:
            self.trial_buffer.append(made)

    def get_suggestion(self, trial: object = None) -> object:
        """Return one of the draws, `None` when there is none left."""
        return self.trial_buffer.pop() if self.trial_buffer else None
