"""One attempt at a trial: who works on it, what was decided about it, what came of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from cargobike.core.records import Decision
from cargobike.driver.events import AttemptEnded

ASKED_TO_END = 1
KILLED = 2


class Attempt(msgspec.Struct):
    """A running attempt, from its start until the last of its workers is done with it.

    Attributes:
        trial: Number of the trial.
        number: Which attempt of the trial it is, from 1.
        workers: The gang; the first is rank 0, whose reports and result count.
        horizon: How much of what the optimizer is shown it may be compared with, `None` for all.
        open: Those of the gang that still work on it.
        waiting: Those that stand still at a milestone, with the step they wait at.
        ends: How it ended, by worker, in the order of arrival.
        lost: Why it cannot succeed any more, if a worker was lost.
        verdict: What was decided about it, and why.
        was_judged: Whether the verdict is a stop at a milestone, which holds even if the function returns a value.
        decided_step: The last step at which rank 0 was allowed to go on.
        force: Whether its workers were asked, or made, to end it.
    """

    trial: int
    number: int
    workers: tuple[str, ...]
    horizon: int | None = None
    open: set[str] = msgspec.field(default_factory=set)
    waiting: dict[str, int] = msgspec.field(default_factory=dict)
    ends: dict[str, AttemptEnded] = msgspec.field(default_factory=dict)
    lost: str | None = None
    verdict: tuple[Literal["stopped", "paused", "failed"], str] | None = None
    was_judged: bool = False
    decided_step: int | None = None
    force: int = 0

    def __post_init__(self) -> None:
        self.open.update(self.workers)

    @property
    def decision(self) -> Decision:
        """What a worker that waits is told, now that a verdict is there."""
        if self.verdict is None:
            return Decision.CONTINUE
        return Decision.PAUSE if self.verdict[0] == "paused" else Decision.STOP

    def may_pass(self, step: int) -> bool:
        """Tell whether a rank other than 0 may go on from a milestone: rank 0 has gone on, or is done."""
        chief = self.workers[0]
        return chief not in self.open or (self.decided_step is not None and step <= self.decided_step)

    def conclusion(self) -> Conclusion:
        """Say what came of it, once nobody works on it any more.

        A lost worker comes before a failure: when one of a gang dies, the others fail for want of it.
        """
        first = self.ends.get(self.workers[0])
        failed = next((end for end in self.ends.values() if end.outcome == "failed"), None)
        lost = self.lost
        completed = lost is None and failed is None and first is not None and first.outcome == "completed"
        if completed and not self.was_judged:
            return Conclusion("completed", first, None)
        if self.verdict is not None and (self.verdict[0] != "paused" or failed is None):
            state, why = self.verdict
            last_words = first.error if state == "failed" and first is not None else None
            return Conclusion(state, first, "\n".join(filter(None, (why, last_words))) or None)
        if lost is None:
            given_up = next((end for end in self.ends.values() if end.outcome == "lost"), None)
            lost = None if given_up is None else given_up.error or "the attempt was lost"
        if lost is not None:
            return Conclusion("lost", first, lost)
        if failed is not None:
            return Conclusion("failed", failed, failed.error)
        ended_itself = next(end for end in self.ends.values() if end.outcome in ("stopped", "paused"))
        return Conclusion("stopped", first, ended_itself.error)


class Conclusion(msgspec.Struct, frozen=True):
    """What came of an attempt, whose end says so, and why."""

    state: Literal["completed", "stopped", "paused", "failed", "lost"]
    end: AttemptEnded | None
    why: str | None
