"""The shapes that the API of pipelines answers with."""

from __future__ import annotations

from typing import Annotated, Any

from cargobike.ui.answers import Answer, Field

Count = Annotated[int, Field(ge=0)]


class PipelineLine(Answer):
    """One pipeline: how many runs it has had, and the last one."""

    pipeline: str
    runs: Count
    last_run: str
    last_at: str


class RunLine(Answer):
    """One run, as lists show it."""

    run: str
    pipeline: str
    state: Annotated[
        str, Field(description="`running`, `completed`, `failed`, `cancelled`, `interrupted` or `unreadable`.")
    ]
    started_at: str
    seconds: Annotated[float, Field(ge=0)]
    steps: Annotated[dict[str, int], Field(description="How many steps are in each state.")]
    cause: Annotated[str, Field(description="What set it off, in words; empty if a person did.")]
    error: str


class RunPage(Answer):
    """A part of the list of runs, the newest first."""

    runs: list[RunLine]
    pipelines: list[PipelineLine]
    total: Count
    offset: Count
    limit: Count


class ValueAnswer(Answer):
    """What a step was given or has returned."""

    name: str
    text: str
    form: str
    page: Annotated[str, Field(description="Where it is shown, if it is a thing of the project or another step.")]
    size_bytes: Count


class StepLine(Answer):
    """One step, as lists show it."""

    step: Count
    name: str
    kind: Annotated[str, Field(description="`function` for a function of yours, `own` for a call of Cargobike.")]
    state: str
    needs: list[int]
    started_at: str | None
    seconds: float
    cpu_s: float
    peak_memory_bytes: Count
    attempt: Count
    result: ValueAnswer | None
    error: str


class RunDetails(Answer):
    """One run: how it is doing, and its steps."""

    run: RunLine
    function: str
    params: dict[str, Any]
    cause: dict[str, Any]
    user: str
    host: str
    result: ValueAnswer | None
    resumed: Annotated[int, Field(ge=0, description="How often it was taken up again.")]
    steps: list[StepLine]
    total: Annotated[int, Field(ge=0, description="How many steps it has.")]
    offset: Count
    limit: Count
    may_change: Annotated[bool, Field(description="Whether this server allows it to be cancelled and resumed.")]
    may_cancel: bool
    may_resume: bool


class StepDetails(Answer):
    """One step: what it was given, what it returned, how often it was tried."""

    step: StepLine
    run: str
    pipeline: str
    inputs: list[ValueAnswer]
    failures: Annotated[list[str], Field(description="Why earlier attempts had no result.")]
    source: Annotated[str, Field(description="The run and step that had done the same, if it was cached.")]
    code: str


class StepOutput(Answer):
    """The last lines that a step printed."""

    stdout: str
    stderr: str


class FiringLine(Answer):
    """One time that a schedule was set off."""

    at: str
    run: str
    outcome: Annotated[str, Field(description="What became of it; empty as long as that is not known.")]
    cause: str
    note: str


class ScheduleLine(Answer):
    """One schedule: what sets off which pipeline, and the last times that it did."""

    schedule: str
    pipeline: Annotated[str, Field(description="The function that it runs, as `file.py:function`.")]
    words: Annotated[str, Field(description="What sets it off.")]
    next_at: Annotated[str | None, Field(description="When the clock sets it off next.")]
    is_paused: bool
    overlap: str
    firings: Annotated[list[FiringLine], Field(description="The newest first, 10 at most.")]


class ScheduleList(Answer):
    """All schedules of the project, by name."""

    schedules: list[ScheduleLine]
    problem: Annotated[str, Field(description="Why there are none, if they cannot be read.")]


class Change(Answer):
    """What was asked for, and how things stand."""

    run: str
    state: str
