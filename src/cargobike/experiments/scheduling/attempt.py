"""One attempt at a trial: its workers, what was decided about it, how each of them ended; and its trial so far."""

from __future__ import annotations

from typing import Literal

import msgspec

from cargobike.core.records import Decision, Milestones
from cargobike.experiments.scheduling.events import AttemptEnded

ASKED_TO_END = 1
KILLED = 2


class Attempt(msgspec.Struct, gc=False):  # as `Trial`: there may be thousands, and none is part of a circle
    """A running attempt, from its start until the last of its workers is done with it.

    Attributes:
        trial: Number of the trial.
        number: Which attempt of the trial it is, from 1.
        workers: The gang; the first is rank 0, whose reports and result count; parameter servers come last.
        horizon: How much of what the optimizer is shown it may be compared with, `None` for all.
        hosts: The host of each of them, if they meet before the function is called.
        servers: How many of them are parameter servers.
        deciding: How many of them must return for it to be complete; `None` for all except the servers.
        open: Members of the gang that still work on it.
        waiting: Members that wait at a milestone for a decision, with the step they wait at.
        steps: The last step that each member reported.
        ends: How it ended, by worker, in the order of arrival.
        lost: Why it cannot succeed any more, if a worker was lost.
        stall: What to say about the stall, if a rank kept the others waiting for too long.
        early: Those that had returned when it stood still.
        re_forms: Whether it was ended only to go on with more workers.
        active_at: When any member last gave a sign of life.
        saved_step: The step of its last checkpoint.
        verdict: What was decided about it, and why.
        was_judged: Whether the verdict is a stop at a milestone, which holds even if the function returns a value.
        decided_step: The last step at which rank 0 was allowed to go on.
        force: Whether its workers were asked, or made, to end it.
    """

    trial: int
    number: int
    workers: tuple[str, ...]
    horizon: int | None = None
    hosts: tuple[str, ...] = ()
    servers: int = 0
    deciding: int | None = None
    open: set[str] = msgspec.field(default_factory=set)
    waiting: dict[str, int] = msgspec.field(default_factory=dict)
    steps: dict[str, int] = msgspec.field(default_factory=dict)
    ends: dict[str, AttemptEnded] = msgspec.field(default_factory=dict)
    lost: str | None = None
    stall: str | None = None
    early: tuple[str, ...] = ()
    re_forms: bool = False
    active_at: float = 0.0
    saved_step: int | None = None
    verdict: tuple[Literal["stopped", "interrupted", "paused", "failed"], str] | None = None
    was_judged: bool = False
    decided_step: int | None = None
    force: int = 0

    def __post_init__(self) -> None:
        self.open.update(self.workers)

    @property
    def is_gang(self) -> bool:
        """Whether several workers work on it."""
        return len(self.workers) > 1

    @property
    def is_doomed(self) -> bool:
        """Whether it will be lost, as far as is known."""
        return self.lost is not None or self.stall is not None or any(e.outcome == "lost" for e in self.ends.values())

    @property
    def ranks(self) -> tuple[str, ...]:
        """The members that train: all except the parameter servers."""
        return self.workers[: len(self.workers) - self.servers]

    @property
    def deciders(self) -> tuple[str, ...]:
        """The members that must return for it to be complete."""
        return self.ranks if self.deciding is None else self.workers[: self.deciding]

    @property
    def attendants(self) -> tuple[str, ...]:
        """The members that are asked to end once the deciders have returned."""
        return self.workers[len(self.deciders) :]

    def is_server(self, worker: str) -> bool:
        """Tell whether a member is a parameter server."""
        return worker in self.workers[len(self.workers) - self.servers :]

    @property
    def has_returned(self) -> bool:
        """Whether all deciders have returned."""
        return not any(worker in self.open for worker in self.deciders) and self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether rank 0 returned, and no other decider failed or was lost."""
        ends = [self.ends.get(worker) for worker in self.deciders]
        if any(end is None or end.outcome in ("failed", "lost") for end in ends):
            return False
        return ends[0] is not None and ends[0].outcome == "completed"

    @property
    def decision(self) -> Decision:
        """What a waiting worker is told: to go on, unless there is a verdict."""
        if self.verdict is None:
            return Decision.CONTINUE
        return Decision.PAUSE if self.verdict[0] == "paused" else Decision.STOP

    def may_pass(self, step: int) -> bool:
        """Tell whether a rank other than 0 may pass a milestone: rank 0 has passed it, or is done."""
        chief = self.workers[0]
        return chief not in self.open or (self.decided_step is not None and step <= self.decided_step)

    def name_of(self, worker: str) -> str:
        """Describe a member: its rank, its host, and the last step it reported."""
        if not self.is_gang:
            return f"worker {worker}"
        index = self.workers.index(worker)
        ranks = len(self.workers) - self.servers
        title = f"rank {index}" if index < ranks else f"server {index - ranks}"
        host = f" on {self.hosts[index]}" if index < len(self.hosts) and self.hosts[index] else ""
        if index >= ranks:
            return f"{title}{host}"
        step = self.steps.get(worker)
        return f"{title}{host} ({'no step reported' if step is None else f'last step {step}'})"


class LiveTrial(msgspec.Struct):
    """What the scheduler must remember about a trial until it has ended.

    Attributes:
        milestones: The steps at which it waits for a decision.
        copy_of: The trial whose checkpoint it begins with.
        told: How many ended trials the optimizer had been shown when it suggested this one.
        losses: How many of its attempts were lost in a row.
        saved_step: The furthest step that an attempt of a gang had saved when it was lost.
        judged_step: The last step at which a decision was made.
        verdict: A decision that an earlier driver recorded but did not carry out, and the name of what made it.
    """

    milestones: Milestones
    copy_of: int | None
    told: int
    losses: int = 0
    saved_step: int = -1
    judged_step: int | None = None
    verdict: tuple[Literal["stop", "pause"], str] | None = None

    def lost(self, attempt: Attempt) -> None:
        """Count a lost attempt; one of a gang that saved new progress starts the count anew.

        A long training may lose many workers on its way, and is not given up as long as it gets further. An attempt
        that was ended to go on with more workers does not count at all.
        """
        if attempt.is_gang and attempt.saved_step is not None and attempt.saved_step > self.saved_step:
            self.saved_step, self.losses = attempt.saved_step, 0
        self.losses += not attempt.re_forms

    @property
    def milestones_ahead(self) -> Milestones:
        """The milestones at which no decision has been made yet."""
        if self.judged_step is None or self.milestones == "every":
            return self.milestones
        return tuple([step for step in self.milestones if step > self.judged_step])
