"""Runs and their steps as the dashboard shows them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from cargobike.core.errors import NotFoundError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import page_of
from cargobike.pipelines.facts import RunStarted, RunState, StepState
from cargobike.pipelines.kind import RUNS
from cargobike.pipelines.pages.answers import RunDetails, StepDetails, StepLine, StepOutput, ValueAnswer
from cargobike.pipelines.pages.listing import Runs, iso, last_line, line_of, settled
from cargobike.pipelines.record import RunRecord, StepRecord, folder_of, read_run, state_of
from cargobike.pipelines.things import needs_of, thing_of
from cargobike.pipelines.values.value import Value

_MOST_BYTES: Final = 200_000
_RESUMABLE: Final = frozenset({RunState.FAILED, RunState.CANCELLED, RunState.INTERRUPTED})


def found(project: ProjectFolder, run: str) -> RunRecord:
    """Return what the journal of a run says.

    Raises:
        NotFoundError: If there is no such run.
    """
    folder = folder_of(project, run) if RUNS.id.fullmatch(run) else None
    if folder is None or not folder.journal.is_file():
        raise NotFoundError(f"There is no run {run!r} in this project.", wanted=run)
    return settled(read_run(folder))


def newest_of(runs: Runs, pipeline: str) -> RunStarted:
    """Return how the newest run of a pipeline was begun.

    Raises:
        NotFoundError: If it never ran in this project; names the nearest.
    """
    begun = runs.started()
    for one in begun:
        if one.pipeline == pipeline:
            return one
    names = sorted({one.pipeline for one in begun if one.pipeline})
    raise NotFoundError(
        f"No pipeline {pipeline!r} has run in this project.{nearest(pipeline, names)}",
        wanted=pipeline,
        nearest=nearest_names(pipeline, names),
    )


def details(record: RunRecord, offset: int, limit: int, *, may_change: bool) -> RunDetails:
    """Return everything about a run, with a part of its steps."""
    needs = needs_of(record)
    numbers = sorted(record.steps)
    state = state_of(record)
    return RunDetails(
        run=line_of(record),
        function=record.started.function,
        params=record.params,
        cause=dict(record.started.cause),
        user=record.started.user,
        host=record.host,
        result=_value(record.id, "result", record.result),
        resumed=len(record.resumed),
        steps=[_step_line(record, number, needs[number]) for number in numbers[offset : offset + limit]],
        total=len(numbers),
        offset=offset,
        limit=limit,
        may_change=may_change and bool(record.started.function),
        may_cancel=may_change and state is RunState.RUNNING,
        may_resume=may_change and state in _RESUMABLE and bool(record.started.function),
    )


def step_details(record: RunRecord, number: int) -> StepDetails:
    """Return everything about a step.

    Raises:
        NotFoundError: If there is no such step.
    """
    if number not in record.steps:
        raise NotFoundError(f"Run {record.id} has no step {number}.", wanted=str(number))
    step = record.steps[number]
    return StepDetails(
        step=_step_line(record, number, needs_of(record)[number]),
        run=record.id,
        pipeline=record.pipeline,
        inputs=[value for name, given in step.inputs.items() if (value := _value(record.id, name, given))],
        failures=[attempt.error for attempt in step.attempts],
        source=step.source,
        code=step.code,
    )


def output(record: RunRecord, number: int) -> StepOutput:
    """Return the last lines that a step printed."""
    if number not in record.steps:
        raise NotFoundError(f"Run {record.id} has no step {number}.", wanted=str(number))
    return StepOutput(*(_tail(record.folder.output(number, stream)) for stream in ("stdout", "stderr")))


def _step_line(record: RunRecord, number: int, needs: tuple[int, ...]) -> StepLine:
    step = record.steps[number]
    return StepLine(
        step=number,
        name=step.name,
        kind=step.kind.value,
        state=step.state.value,
        needs=list(needs),
        started_at=None if step.started_at is None else iso(step.started_at),
        seconds=_seconds(step),
        cpu_s=step.cpu_s,
        peak_memory_bytes=step.peak_memory_bytes,
        attempt=step.attempt,
        result=_value(record.id, "result", step.result),
        error=last_line(step.error),
    )


def _seconds(step: StepRecord) -> float:
    if step.state is StepState.RUNNING and step.started_at is not None:
        return max(0.0, time.time() - step.started_at)
    return step.seconds


def _value(run: str, name: str, value: Value | None) -> ValueAnswer | None:
    if value is None:
        return None
    thing = thing_of(value)
    page = page_of(thing) if thing is not None else ""
    if value.form == "step" and not isinstance(value.data, list):
        page = f"/pipelines/runs/{run}/steps/{value.data}"
    return ValueAnswer(name, str(value), value.form, page, value.size_bytes)


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_BYTES))
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return text if size <= _MOST_BYTES else "…\n" + text.partition("\n")[2]
