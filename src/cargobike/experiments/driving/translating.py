"""Turns what workers say about trials into events for the scheduler. Pure."""

from __future__ import annotations

from pathlib import Path

from cargobike.experiments.driving.crashes import with_crash
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.trial import messages
from cargobike.experiments.trial.death import end_of_dead, with_last_output
from cargobike.workers.wire import messages as wire


def event_of_report(
    worker: str,
    message: wire.Said[messages.FromTrial],
    body: messages.Point | messages.Saved | messages.KeptModel,
    *,
    at: float,
    project: Path,
) -> ev.PointsReported | ev.CheckpointWritten | ev.ModelPacked:
    """Return the event of a report, a model, or a checkpoint, whose path a runner knows relative to the project."""
    if isinstance(body, messages.Point):
        return ev.PointsReported(
            at=at,
            worker=worker,
            trial=message.task,
            attempt=message.attempt,
            step=body.step,
            metrics=body.metrics,
            waits=body.waits,
            number=body.number,
            made_in=body.made_in,
            asks=body.asks,
        )
    if isinstance(body, messages.KeptModel):
        return ev.ModelPacked(at=at, worker=worker, trial=message.task, attempt=message.attempt, name=body.name)
    return ev.CheckpointWritten(
        at=at,
        worker=worker,
        trial=message.task,
        attempt=message.attempt,
        step=body.step,
        path=str(project / body.path),
        size_bytes=body.size_bytes,
    )


def event_of_end(
    worker: str, message: wire.Ended[messages.AttemptEnd] | wire.Died, *, at: float, has_peers: bool
) -> ev.AttemptEnded:
    """Return the event of an attempt's end, as its runner says or as the death of its process tells."""
    if isinstance(message, wire.Died):
        end = end_of_dead(message, has_peers=has_peers)
        error, last_output = with_crash(end.error, message.last_output)
    else:
        end, error, last_output = message.body, message.body.error, message.last_output
    return ev.AttemptEnded(
        at=at,
        worker=worker,
        trial=message.task,
        attempt=message.attempt,
        outcome=end.outcome,
        value=end.value,
        metrics=end.metrics,
        error=with_last_output(error, last_output),
        alike=end.alike,
        peak_memory_bytes=end.peak_memory_bytes,
        is_symptom=end.is_symptom,
        stack=message.stack,
        extras=end.extras,
        took_s=end.took_s,
    )
