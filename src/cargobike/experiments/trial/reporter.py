"""Maggy's way to report, for train functions that have a parameter named `reporter`."""

from __future__ import annotations

from typing import Final

from cargobike.experiments.trial.context import Context

UNNAMED: Final = "metric"
"""What a reporter calls the objective if the search has no name for it."""


class Reporter:
    """What a train function with a parameter named `reporter` gets: Maggy's way to report."""

    def __init__(self, context: Context, name: str = UNNAMED) -> None:
        self._context = context
        self._name = name

    def broadcast(self, metric: float, step: int | None = None) -> None:
        """Report the objective."""
        self._context.report({self._name: metric}, step)
