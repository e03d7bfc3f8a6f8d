"""The facts of a run: what its journal is made of.

A run is one call of a pipeline. Its driver writes a fact before it acts on it: that a step was asked for, that it is
about to begin, how it ended. A step is called by its number, its place in the order in which the pipeline asked.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from cargobike.core.facts import Count, Fact, Facts
from cargobike.pipelines.values.value import Value

RUN_VERSION: Final = 1


class RunState(StrEnum):
    """What became of a run."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """Ctrl-C, or its driver died; can be resumed, as can one that failed or was cancelled."""


class StepState(StrEnum):
    """What became of a step."""

    WAITING = "waiting"
    """For its inputs, for a free place, or for the next attempt."""
    RUNNING = "running"
    COMPLETED = "completed"
    CACHED = "cached"
    """An earlier run had done the same."""
    FAILED = "failed"
    REFUSED = "refused"
    """A gate was not passed: it has no result, but that is a decision and no failure."""
    SKIPPED = "skipped"
    """A step whose result it needs has failed."""
    INTERRUPTED = "interrupted"
    """The run ended while it ran or waited."""

    @property
    def is_done(self) -> bool:
        """Whether it has a result."""
        return self in (StepState.COMPLETED, StepState.CACHED)

    @property
    def has_raised(self) -> bool:
        """Whether it ended with an error, which the function is told of."""
        return self in (StepState.FAILED, StepState.REFUSED)


class StepKind(StrEnum):
    """What a step is."""

    FUNCTION = "function"
    """A function of the user, in a process of its own."""
    OWN = "own"
    """A call of our own, in the driver's process."""


class RunStarted(Fact, frozen=True, tag="run-started"):
    """The first line of every journal.

    Attributes:
        id: The run.
        pipeline: What people call the pipeline: the function's name.
        function: Where to find it again: `file.py:name`, `module:name`; empty for one that exists in memory only.
        params: What it was called with, packed exactly.
        code: The fingerprints of its code and of what it reaches, by name.
        cause: What set it off, as plain data: a schedule, an alarm; empty if a person did.
        parallel: How many steps may run at once.
        folder: The working directory.
        use_cache: Whether results of earlier runs may be used.
    """

    id: str
    pipeline: str
    function: str = ""
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    code: dict[str, str] = msgspec.field(default_factory=dict)
    cause: dict[str, Any] = msgspec.field(default_factory=dict)
    parallel: Count = 1
    folder: str = ""
    use_cache: bool = True
    version: int = msgspec.field(default_factory=lambda: RUN_VERSION)
    cargobike: str = ""
    user: str = ""
    host: str = ""
    pid: int = 0


class RunResumed(Fact, frozen=True, tag="run-resumed"):
    """A new driver took the run up again; `code` is there if it had changed and that was accepted."""

    code: dict[str, str] = msgspec.field(default_factory=dict)
    host: str = ""
    pid: int = 0


class StepAsked(Fact, frozen=True, tag="step-asked"):
    """The pipeline asked for a step.

    Attributes:
        step: Its number, from 1.
        name: What people call it.
        kind: What it is.
        code: The fingerprint of its code; empty for calls of our own.
        inputs: What it was called with, by the names of its parameters.
        digest: The fingerprint of all inputs together, without what other steps return.
        after: The steps whose results it was given.
        function: Where to find its function again: `file.py:name`; empty if that is not at the top of a file.
    """

    step: Count
    name: str
    kind: StepKind = StepKind.FUNCTION
    code: str = ""
    inputs: dict[str, Value] = msgspec.field(default_factory=dict)
    digest: str = ""
    after: tuple[Count, ...] = ()
    function: str = ""


class StepStarted(Fact, frozen=True, tag="step-started"):
    """A step is about to begin; `token` names it to what a call of our own makes."""

    step: Count
    attempt: Count = 1
    token: str = ""


class AttemptEnded(Fact, frozen=True, tag="attempt-ended"):
    """An attempt ended without a result, and another follows, not before `again_at`."""

    step: Count
    attempt: Count
    error: str
    again_at: float = 0.0


class StepEnded(Fact, frozen=True, tag="step-ended"):
    """A step ended.

    Attributes:
        state: How.
        result: What it returned, by reference.
        error: Why it has no result, with the traceback of the user's own code.
        failure: The exception itself, if it can be kept; raised again where a call of our own failed.
        seconds: How long the attempt took.
        cpu_s: Processor time of its process and those it waited for.
        peak_memory_bytes: The most memory that its process used.
        source: The run and step that had done the same, for one that was cached: `run/3`.
    """

    step: Count
    state: StepState
    attempt: Count = 0
    result: Value | None = None
    error: str = ""
    failure: Value | None = None
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0
    source: str = ""


class RunEnded(Fact, frozen=True, tag="run-ended"):
    """The driver closed the run; one that was resumed has several of these.

    Attributes:
        state: How.
        result: What the pipeline returned.
        error: Why it has no result.
        failed: The steps whose errors ended it: these are tried again when it is resumed.
    """

    state: RunState
    result: Value | None = None
    error: str = ""
    failed: tuple[Count, ...] = ()


AnyRunFact = RunStarted | RunResumed | StepAsked | StepStarted | AttemptEnded | StepEnded | RunEnded

RUN_FACTS: Final[Facts[AnyRunFact, RunStarted]] = Facts(AnyRunFact, first=RunStarted, version=RUN_VERSION)
