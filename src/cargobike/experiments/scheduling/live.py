"""What the scheduler must know about a trial until it has ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from cargobike.core.records import Milestones
from cargobike.experiments.scheduling.attempt import Attempt


class Live(msgspec.Struct):
    """What must be known about a trial until it has ended.

    Attributes:
        milestones: Where it waits for a decision.
        copy_of: The trial whose checkpoint it begins with.
        told: How many trials the optimizer had been shown when it suggested it.
        losses: How many of its attempts were lost in a row.
        saved_step: The furthest step that an attempt of a gang had saved when it was lost.
        judged_step: The last step that was decided about.
        verdict: A decision that its driver did not live to see carried out, and who had decided.
    """

    milestones: Milestones
    copy_of: int | None
    told: int
    losses: int = 0
    saved_step: int = -1
    judged_step: int | None = None
    verdict: tuple[Literal["stop", "pause"], str] | None = None

    def lost(self, attempt: Attempt) -> None:
        """Count a lost attempt; of a gang only if it was in vain: a long training may lose many workers."""
        if attempt.is_gang and attempt.saved_step is not None and attempt.saved_step > self.saved_step:
            self.saved_step, self.losses = attempt.saved_step, 0
        self.losses += not attempt.re_forms

    @property
    def milestones_ahead(self) -> Milestones:
        """The milestones that have not been decided about."""
        if self.judged_step is None or self.milestones == "every":
            return self.milestones
        return tuple([step for step in self.milestones if step > self.judged_step])
