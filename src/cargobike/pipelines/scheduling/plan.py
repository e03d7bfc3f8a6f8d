"""What was asked for with a schedule: which function, when, and what holds if a run is still at work."""

from __future__ import annotations

import functools
from typing import Any, Literal

import msgspec

from cargobike.core.registering.triggers import Trigger
from cargobike.pipelines.scheduling.times.cron import Cron
from cargobike.pipelines.scheduling.times.times import Every, Times
from cargobike.pipelines.scheduling.times.zones import UTC_NAME

Overlap = Literal["skip", "queue", "cancel"]
CatchUp = Literal["none", "last", "all"]


class Target(msgspec.Struct, frozen=True):
    """The function that a schedule runs, by name, so that another process can import it.

    Attributes:
        where: The path of its file.
        function: Its name there.
        folder: The working directory of its runs.
        fingerprint: Of the code of the file, when it was scheduled.
        host: The host on which it was scheduled.
    """

    where: str
    function: str
    folder: str = ""
    fingerprint: str = ""
    host: str = ""

    def __str__(self) -> str:
        return f"{self.where}:{self.function}"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it was asked for.

    Attributes:
        target: The function.
        arguments: What it is called with, as plain data.
        every_s: The period in seconds; 0 without one.
        cron: The cron expression; empty without one.
        timezone: The zone of the expression, and of the times that people see.
        when: What sets it off besides the clock.
        overlap: What happens if a run of it is still at work.
        catch_up: Which of the times are made up for that passed while no scheduler was at work.
        start: When it was asked for: periods count from here.
    """

    target: Target
    arguments: dict[str, Any] = {}
    every_s: float = 0.0
    cron: str = ""
    timezone: str = UTC_NAME
    when: tuple[Trigger, ...] = ()
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    start: float = 0.0

    def is_same_as(self, other: Plan) -> bool:
        """Tell whether another plan asks for the same, whenever that was."""
        return msgspec.structs.replace(self, start=0.0) == msgspec.structs.replace(other, start=0.0)

    def has_times_of(self, other: Plan) -> bool:
        """Tell whether the clock sets both off at the same times."""
        return (self.every_s, self.cron, self.timezone) == (other.every_s, other.cron, other.timezone)


def times_of(plan: Plan) -> Times | None:
    """Return the times of a plan; `None` if only triggers set it off."""
    if plan.cron:
        return _cron(plan.cron, plan.timezone)
    return Every(plan.every_s, plan.start) if plan.every_s else None


@functools.lru_cache(maxsize=1024)
def _cron(expression: str, timezone: str) -> Cron:
    return Cron(expression, timezone)
