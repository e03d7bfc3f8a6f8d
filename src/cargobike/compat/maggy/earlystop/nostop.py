"""Maggy's rule that stops nothing."""

from __future__ import annotations

from typing import Any

from cargobike.compat.maggy.earlystop.abstractearlystop import AbstractEarlyStop

__all__ = ["NoStoppingRule"]


class NoStoppingRule(AbstractEarlyStop):
    """Stops nothing."""

    @staticmethod
    def earlystop_check(to_check: Any, finalized_trials: list[Any], direction: str) -> None:
        """Return nothing."""
        return
