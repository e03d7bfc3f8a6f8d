"""What the conductor of a run hears, and what it commands. Plain data; time arrives in events."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from cargobike.pipelines.facts import AnyRunFact, RunState, StepAsked
from cargobike.pipelines.values.value import Value

LOCAL: Final = "local"
"""The engine of steps that run in the process itself."""


class Options(msgspec.Struct, frozen=True):
    """How a step is run.

    Attributes:
        retries: How many more attempts there are after one that failed.
        backoff_s: The pause before the second attempt; each further one is twice as long.
        timeout_s: How long an attempt may take.
        cache_s: How old the result of an earlier run may be; 0 if none may be used.
        engine: Where it runs.
    """

    retries: int = 0
    backoff_s: float = 1.0
    timeout_s: float = math.inf
    cache_s: float = 0.0
    engine: str = LOCAL


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an attempt ended; written by the process of the step into a file before it ends.

    Attributes:
        ok: Whether it has a result.
        result: What it returned.
        error: Why it has none.
        failure: The exception, if it can be kept.
        lost: Whether its process was lost through no fault of the step.
        final: Whether another attempt would end the same way.
        interrupted: Whether it was told to end; a run that is resumed begins it again.
        refused: Whether it has none because a gate was not passed.
    """

    ok: bool
    result: Value | None = None
    error: str = ""
    failure: Value | None = None
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0
    lost: bool = False
    final: bool = False
    interrupted: bool = False
    refused: bool = False


class Hit(msgspec.Struct, frozen=True):
    """What an earlier run returned: its value, and which run and step that were."""

    result: Value
    source: str


# -- events ----------------------------------------------------------------------------------------------------------


class Asked(msgspec.Struct, frozen=True):
    """The pipeline asked for a step."""

    ask: StepAsked
    options: Options = Options()


class LookedUp(msgspec.Struct, frozen=True):
    """Answers `LookUp`."""

    at: float
    step: int
    hit: Hit | None = None


class Recovered(msgspec.Struct, frozen=True):
    """Answers `Recover`: how an attempt of a driver that died has ended, `None` if it had recorded nothing."""

    at: float
    step: int
    outcome: Outcome | None = None


class Ended(msgspec.Struct, frozen=True):
    """An attempt has ended, and its process is gone."""

    at: float
    step: int
    attempt: int
    outcome: Outcome


class ProcessesLost(msgspec.Struct, frozen=True):
    """All processes of steps are gone, through no fault of theirs."""

    at: float
    reason: str


class Passed(msgspec.Struct, frozen=True):
    """Time has passed."""

    at: float


class Left(msgspec.Struct, frozen=True):
    """The pipeline's function has ended; if it failed, steps that wait are not begun any more."""

    at: float
    failed: bool = False


class Stopped(msgspec.Struct, frozen=True):
    """The run is to end now."""

    at: float
    state: RunState


Event = Asked | LookedUp | Recovered | Ended | ProcessesLost | Passed | Left | Stopped


# -- commands --------------------------------------------------------------------------------------------------------


class Write(msgspec.Struct, frozen=True):
    """Append a fact to the journal, before anything that follows."""

    fact: AnyRunFact


class LookUp(msgspec.Struct, frozen=True):
    """Look for the result of an earlier run, under a key; it may be so old."""

    step: int
    key: str
    most_age_s: float


class Remember(msgspec.Struct, frozen=True):
    """Put the result of a step where later runs look for it."""

    step: int
    key: str


class Recover(msgspec.Struct, frozen=True):
    """Find out what an attempt of a driver that died has recorded."""

    step: int
    attempt: int


class Begin(msgspec.Struct, frozen=True):
    """Begin an attempt in a process of its own; a call of our own is made by the one who asked."""

    step: int
    attempt: int


class EndAttempt(msgspec.Struct, frozen=True):
    """End the process of an attempt; an `Ended` follows."""

    step: int
    attempt: int


class Settle(msgspec.Struct, frozen=True):
    """The step is at its end: the record says how."""

    step: int


class Refuse(msgspec.Struct, frozen=True):
    """The pipeline asked for something else than before; the one who asked is told so."""

    step: int
    message: str


Command = Write | LookUp | Remember | Recover | Begin | EndAttempt | Settle | Refuse
