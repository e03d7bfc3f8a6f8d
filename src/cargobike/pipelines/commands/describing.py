"""Runs and steps in the words of commands, and as JSON for programs (also for pages and exporters)."""

from __future__ import annotations

from typing import Any

from cargobike.cli.printing import utc
from cargobike.core.values.exact import unpack_exactly
from cargobike.pipelines.facts import StepState
from cargobike.pipelines.record import RunRecord, StepRecord, state_of
from cargobike.pipelines.values.value import Value


def run_as_json(record: RunRecord, *, with_steps: bool = True) -> dict[str, Any]:
    """Return everything about a run that programs may want."""
    described: dict[str, Any] = {
        "id": record.id,
        "pipeline": record.pipeline,
        "state": state_of(record).value,
        "params": record.params,
        "cause": record.started.cause,
        "function": record.started.function,
        "started_at": utc(record.started.at),
        "ended_at": utc(record.ended_at),
        "seconds": record.seconds,
        "result": value_as_json(record.result),
        "error": record.error,
        "counts": {state.value: count for state, count in record.counted().items()},
        "user": record.started.user,
        "host": record.host,
        "folder": str(record.folder.root),
    }
    if with_steps:
        described["steps"] = [step_as_json(record.steps[number]) for number in sorted(record.steps)]
    return described


def step_as_json(step: StepRecord) -> dict[str, Any]:
    """Return everything about a step that programs may want."""
    return {
        "step": step.number,
        "name": step.name,
        "kind": step.kind.value,
        "state": step.state.value,
        "after": list(step.after),
        "attempt": step.attempt,
        "asked_at": utc(step.asked_at),
        "started_at": utc(step.started_at),
        "ended_at": utc(step.ended_at),
        "seconds": step.seconds,
        "cpu_s": step.cpu_s,
        "peak_memory_bytes": step.peak_memory_bytes,
        "inputs": {name: value_as_json(value) for name, value in step.inputs.items()},
        "result": value_as_json(step.result),
        "error": step.error,
        "source": step.source,
        "code": step.code,
    }


def value_as_json(value: Value | None) -> dict[str, Any] | None:
    """Return a value by reference."""
    if value is None:
        return None
    described: dict[str, Any] = {"form": value.form, "digest": value.digest, "text": str(value)}
    if value.form == "plain":
        described["value"] = unpack_exactly(value.data)
    if value.thing is not None:
        described["thing"] = {"kind": value.thing[0], "id": value.thing[1]}
    if value.path:
        described |= {"path": value.path, "size_bytes": value.size_bytes}
    return described


def summary(record: RunRecord) -> str:
    """Say in a line what became of a run."""
    result = f": {record.result}" if record.result is not None else ""
    return f"{record.pipeline} {record.id} is {state_of(record)}, {counted(record)}, {record.seconds:.1f} s{result}"


def counted(record: RunRecord) -> str:
    """Say how many steps are in which state."""
    counts = record.counted()
    words = [f"{counts[state]} {state}" for state in StepState if counts.get(state)]
    return ", ".join(words) or "no steps"
