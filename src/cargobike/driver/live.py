"""What the scheduler must know about a trial until it has ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from cargobike.core.records import Milestones


class Live(msgspec.Struct):
    """What must be known about a trial until it has ended.

    Attributes:
        milestones: Where it waits for a decision.
        copy_of: The trial whose checkpoint it begins with.
        told: How many trials the optimizer had been shown when it suggested it.
        losses: How many of its attempts were lost in a row.
        judged_step: The last step that was decided about.
        verdict: A decision that its driver did not live to see carried out, and who had decided.
    """

    milestones: Milestones
    copy_of: int | None
    told: int
    losses: int = 0
    judged_step: int | None = None
    verdict: tuple[Literal["stop", "pause"], str] | None = None

    @property
    def milestones_ahead(self) -> Milestones:
        """The milestones that have not been decided about."""
        if self.judged_step is None or self.milestones == "every":
            return self.milestones
        return tuple([step for step in self.milestones if step > self.judged_step])
