"""The stop-rule interface: what may end a running trial early, next to any optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cargobike.core.records import Decision, Direction, Trial


class StopRule(Protocol):
    """Decides about running trials. Pure: the same trials give the same decision."""

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        """Decide about a trial that has just reported.

        Args:
            trial: The trial, standing still until the decision.
            step: The step it reported.
            trials: All trials that may be compared with, running ones included.
            direction: `"max"` or `"min"`.
        """
        ...
