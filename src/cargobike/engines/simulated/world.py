"""What simulated workers are like, what their train function would do, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Params
from cargobike.core.running.ending import Ending
from cargobike.core.values.kinds import is_number
from cargobike.core.values.times import read_seconds


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a train function would do with some parameters.

    Attributes:
        steps: For each step how many seconds it takes on a worker of speed 1, and what is reported after it; the
            first step is step 1. A checkpoint is saved after each report.
        value: The score that it returns after the last step.
        error: If given, it raises this after the last step instead of returning.
    """

    steps: Sequence[tuple[float, Mapping[str, float]]]
    value: float | None = None
    error: str | None = None


SimulatedFunction = Callable[[Params, int], SimulatedRun]
"""A model of a train function: takes parameters and the trial's seed."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """What the simulated workers are like.

    Attributes:
        speeds: How fast each worker is, 1 being the speed that a model's durations are meant for; if there are more
            workers than speeds, they are repeated. A replacement is as fast as the worker that it replaces.
        startup_s: How long a worker takes from its start to its first word; also as `"2m"`.
        mean_time_to_failure_s: How long a worker lives on average, `None` for ever.
        failed_starts: Share of the workers that never come.
        seed: Decides who fails when.
    """

    speeds: tuple[float, ...] = (1.0,)
    startup_s: float = 0.0
    mean_time_to_failure_s: float | None = None
    failed_starts: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        mistakes = []
        speeds: object = self.speeds
        known = speeds if isinstance(speeds, list | tuple) else ()
        if not known or not all(is_number(each, lambda speed: speed > 0) for each in known):
            mistakes.append(f"speeds={self.speeds!r}; give at least one, each above 0")
        for name in ("startup_s", "mean_time_to_failure_s"):
            try:
                seconds = read_seconds(name, getattr(self, name), may_be_zero=name == "startup_s")
            except InvalidInputError as error:
                mistakes.append(str(error))
            else:
                msgspec.structs.force_setattr(self, name, seconds)
        if not is_number(self.failed_starts, lambda share: 0 <= share < 1):
            mistakes.append(f"failed_starts={self.failed_starts!r}; it must be at least 0 and below 1")
        if mistakes:
            raise InvalidInputError("There can be no such cluster:", mistakes)


class Joined(msgspec.Struct, frozen=True):
    """A worker says its first word."""

    worker: str


class Lost(msgspec.Struct, frozen=True):
    """A worker is gone."""

    worker: str
    ending: Ending


class Reported(msgspec.Struct, frozen=True):
    """A train function reports, and stands still if it `waits`."""

    worker: str
    trial: int
    attempt: int
    step: int
    metrics: Mapping[str, float]
    waits: bool


class Ended(msgspec.Struct, frozen=True):
    """A worker is done with an attempt."""

    worker: str
    trial: int
    attempt: int
    outcome: Literal["completed", "stopped", "paused", "failed"]
    value: float | None = None
    error: str | None = None


Happening = Joined | Lost | Reported | Ended


class Usage(msgspec.Struct):
    """How the workers spent their time, in worker-seconds.

    Attributes:
        busy_s: Time spent on trials.
        idle_s: Time spent waiting for one, as long as another was still to come.
        busy_with_more_to_come_s: The part of `busy_s` before the last trial was handed out.
        steps: How many steps were run, repeated ones included.
    """

    busy_s: float = 0.0
    idle_s: float = 0.0
    busy_with_more_to_come_s: float = 0.0
    steps: int = 0

    @property
    def utilisation(self) -> float:
        """Share of the workers' time that was spent on trials while there was work for all."""
        there_s = self.busy_with_more_to_come_s + self.idle_s
        return self.busy_with_more_to_come_s / there_s if there_s else 1.0
