"""The state of a schedule: everything that the policy decides by, and all that is kept of it."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from cargobike.core.registering.triggers import Trigger
from cargobike.core.values.times import on_calendar
from cargobike.pipelines.scheduling.plan import Plan

MOST_KEPT: Final = 30
"""So many firings that are over are kept with a schedule; the runs themselves are kept until they are deleted."""

Outcome = Literal["", "completed", "failed", "cancelled", "interrupted", "not started", "skipped", "missed"]


class Firing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One time that a schedule was set off.

    Attributes:
        run: The id of its run.
        at: When the scheduler decided about it.
        due: The time of the clock that set it off; `None` if a trigger did.
        cause: What set it off, for the pipeline and for people.
        is_cancelled: Whether its run was told to end because of a later firing.
        outcome: What became of it; empty as long as that is not known.
        ended: When that became known.
        note: More about the outcome.
        count: How many times `missed` stands for.
    """

    run: str
    at: float
    due: float | None = None
    cause: dict[str, Any] = {}
    is_cancelled: bool = False
    outcome: Outcome = ""
    ended: float | None = None
    note: str = ""
    count: int = 1


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule.

    Attributes:
        name: Its name.
        plan: What was asked for.
        created: When it was first asked for.
        decided: All times up to this one have been decided about.
        ahead: Times after that which have been fired already, by a scheduler whose clock was ahead.
        marks: What was last seen of each trigger, by its key.
        fired: How often it was set off.
        active: Firings whose runs are at work, or about to be.
        waiting: Firings that wait for those.
        over: The last firings that are over, the oldest first.
        is_paused: Whether nothing sets it off for now.
        is_removed: Whether it was deleted; its name may be used again.
        by: Who changed it last.
    """

    name: str
    plan: Plan
    created: float = 0.0
    decided: float = 0.0
    ahead: tuple[float, ...] = ()
    marks: dict[str, str] = {}
    fired: int = 0
    active: tuple[Firing, ...] = ()
    waiting: tuple[Firing, ...] = ()
    over: tuple[Firing, ...] = ()
    is_paused: bool = False
    is_removed: bool = False
    by: str = ""

    @property
    def is_on(self) -> bool:
        """Whether anything can set it off."""
        return not self.is_paused and not self.is_removed


def key_of(trigger: Trigger) -> str:
    """Return what a trigger is called in marks: the same for equal ones, also after a change of the others."""
    return msgspec.json.encode(trigger, order="sorted").decode()


def run_at(name: str, due: float) -> str:
    """Return the id of the run that a schedule starts at a time of the clock: the same for everyone who asks."""
    moment = on_calendar(due)
    fraction = f"{moment.microsecond // 1000:03d}" if moment.microsecond >= 1000 else ""
    return f"{name}-{moment:%Y%m%dT%H%M%S}{fraction}"


def run_by(name: str, trigger: Trigger, number: int) -> str:
    """Return the id of a run that a trigger starts, as the so-manieth firing of a schedule."""
    return f"{name}-{trigger.kind}-{number}"
