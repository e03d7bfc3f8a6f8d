"""The stop-rule interface: what may end a running trial early, next to any optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from cargobike.core.records import Decision, Direction, Trial


class StopRule(Protocol):
    """Decides about running trials. Pure: the same trials give the same decision.

    Every report waits for it, unless it has an attribute `judges_steps` that is false.
    """

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        """Decide about a trial that has just reported.

        Args:
            trial: The trial, standing still until the decision.
            step: The step it reported.
            trials: All trials that may be compared with, running ones included.
            direction: `"max"` or `"min"`.
        """
        ...


@runtime_checkable
class EndRule(Protocol):
    """A stop rule that may also find that the whole search has what it wants."""

    def reason_to_end(self, trial: Trial, direction: Direction) -> str | None:
        """Look at a trial that has just ended or paused, and say why the search may end; `None` if it may not."""
        ...
