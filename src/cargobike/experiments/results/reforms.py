"""How often gangs had to form again, and what that cost: read from an experiment's facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cargobike.core.record import ExperimentRecord


@dataclass(frozen=True, slots=True)
class Reform:
    """One time that a trial lost an attempt and began another.

    Attributes:
        trial: Number of the trial.
        attempt: The attempt that was lost.
        reason: Why: which worker was lost or joined.
        workers_before: How many workers it had.
        workers_after: How many the next attempt had, 0 if there was none.
        lost_s: How much work was lost with it: the time since its last checkpoint, or since its start.
        pause_s: How long it took until the next attempt was started.
    """

    trial: int
    attempt: int
    reason: str
    workers_before: int
    workers_after: int
    lost_s: float
    pause_s: float


def reforms_of(record: ExperimentRecord) -> list[Reform]:
    """Return every lost attempt of every trial, in the order of trials."""
    reforms = []
    for trial, attempts in record.attempts.items():
        saved = record.checkpoints.get(trial, [])
        for lost, following in zip(attempts, [*attempts[1:], None], strict=True):
            if lost.ended_at is None or lost.ended in _NOT_LOST or lost.ended is None:
                continue
            last = max((each.at for each in saved if each.attempt == lost.number), default=lost.started_at)
            reforms.append(
                Reform(
                    trial=trial,
                    attempt=lost.number,
                    reason=lost.ended,
                    workers_before=len(lost.workers),
                    workers_after=0 if following is None else len(following.workers),
                    lost_s=lost.ended_at - last,
                    pause_s=0.0 if following is None else following.started_at - lost.ended_at,
                )
            )
    return reforms


_NOT_LOST = ("completed", "stopped", "failed", "paused")
