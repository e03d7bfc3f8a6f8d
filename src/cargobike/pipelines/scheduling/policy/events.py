"""What the policy is told, each with the time at which it happened, and what it answers."""

from __future__ import annotations

import msgspec

from cargobike.core.registering.triggers import Seen, Trigger
from cargobike.pipelines.scheduling.plan import Plan
from cargobike.pipelines.scheduling.policy.state import Firing, Outcome


class Event(msgspec.Struct, frozen=True):
    """Base of all events: when, in seconds since 1970, by the clock of whoever noticed."""

    at: float


class Asked(Event, frozen=True):
    """A user asked for a plan; `marks` is what was seen of its triggers then."""

    plan: Plan
    marks: dict[str, str] = {}
    by: str = ""


class PauseAsked(Event, frozen=True):
    """A user wants that nothing sets the schedule off for now."""

    by: str = ""


class ResumeAsked(Event, frozen=True):
    """A user wants it to go on."""

    marks: dict[str, str] = {}
    by: str = ""


class RemoveAsked(Event, frozen=True):
    """A user wants it gone."""

    by: str = ""


class Ticked(Event, frozen=True):
    """Time has passed."""


class Looked(Event, frozen=True):
    """A trigger was looked at; `since` is the mark that was given to the look."""

    trigger: Trigger
    since: str
    seen: Seen


class RunOver(Event, frozen=True):
    """A run is not at work any more."""

    run: str
    outcome: Outcome
    note: str = ""


AnyEvent = Asked | PauseAsked | ResumeAsked | RemoveAsked | Ticked | Looked | RunOver


class Launch(msgspec.Struct, frozen=True):
    """Start the run of a firing; starting it again must not make a second one."""

    firing: Firing


class Cancel(msgspec.Struct, frozen=True):
    """End a run; asking again must do no harm."""

    run: str


Command = Launch | Cancel
