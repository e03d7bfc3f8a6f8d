"""What the scheduler must know about a trial until it has ended."""

from __future__ import annotations

import msgspec

from cargobike.core.records import Milestones


class Live(msgspec.Struct):
    """What must be known about a trial until it has ended."""

    milestones: Milestones
    copy_of: int | None
    told: int
    losses: int = 0
    judged_step: int | None = None
