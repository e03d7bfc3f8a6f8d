"""Maggy's median rule."""

from __future__ import annotations

import statistics
from typing import Any

from cargobike.compat.maggy.earlystop.abstractearlystop import AbstractEarlyStop

__all__ = ["MedianStoppingRule"]


class MedianStoppingRule(AbstractEarlyStop):
    """Stops a trial whose best value is worse than the median of what finished ones had on average by then.

    Our own `MedianRule` compares best values with best values, running trials included.
    """

    @staticmethod
    def earlystop_check(to_check: Any, finalized_trials: list[Any], direction: str) -> Any:
        """Return the trial's id if it should stop."""
        count = len(to_check.metric_history)
        histories = [other.metric_history for other in finalized_trials if len(other.metric_history) >= count]
        if not count or not histories:
            return None
        median = statistics.median(sum(history[:count]) / count for history in histories)
        is_worse = (
            max(to_check.metric_history) < median if direction == "max" else min(to_check.metric_history) > median
        )
        return to_check.trial_id if is_worse else None
