"""Maggy's interface for stop rules that users have written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["AbstractEarlyStop"]


class AbstractEarlyStop(ABC):
    """A rule that stops running trials.

    What it is asked about is a `Trial`, as since 0.2, and also the dict with that trial alone, as in 0.1.
    """

    @staticmethod
    @abstractmethod
    def earlystop_check(to_check: Any, finalized_trials: list[Any], direction: str) -> Any:
        """Return the id of the trial if it should stop, a list of such ids, or nothing.

        Args:
            to_check: The trial that has just broadcast.
            finalized_trials: All that have ended.
            direction: `"max"` or `"min"`.
        """
