"""Runs pipelines, or goes on with a run of an earlier try of the task."""

from __future__ import annotations

import sys
from typing import Any

from cargobike import pipelines
from cargobike.errors import CargobikeError, NotFoundError

from .answers import NotPlainError, plain
from .functions import load_function

Arguments = dict[str, Any]
Origin = dict[str, Any]


def run_pipeline(arguments: Arguments, origin: Origin) -> Any:
    """Run a pipeline to its end, or go on where its run was, and return a reference to the run."""
    run_id, place = arguments["run_id"], arguments["pipeline"]
    pipeline = place if place.rpartition(":")[0].endswith(".py") else load_function(place)
    before = _find(run_id)
    try:
        if before is None:
            run = pipelines.run(
                pipeline, run_id=run_id, cause={"airflow": origin}, watch=_tell, **arguments["parameters"]
            )
        else:
            print(f"The run {run_id} is {before.state}; going on with it.", flush=True)  # noqa: T201
            run = pipelines.resume(run_id, pipeline, accept_changes=arguments["accept_changes"], watch=_tell)
    except CargobikeError:
        _show_failures(run_id)
        raise
    return run_reference(run)


def run_reference(run: Any) -> dict[str, Any]:
    """Return a reference to a run, with what it returned if that is plain data or a thing of the project."""
    try:
        result = plain(run.result)
    except NotPlainError:
        result = None  # it is kept with the run
    return {
        "kind": "pipeline",
        "id": run.id,
        "name": run.pipeline,
        "state": str(run.state),
        "steps": len(run.steps),
        "result": result,
    }


def _find(run_id: str) -> Any:
    """Return the run with exactly this id; `None` if there is none."""
    try:
        run = pipelines.get(run_id)
    except NotFoundError:
        return None
    return run if run.id == run_id else None


def _tell(record: Any, fact: Any) -> None:
    """Print what became of a step."""
    number = getattr(fact, "step", None)
    if number in record.steps and type(fact).__name__ in {"StepStarted", "StepEnded"}:
        step = record.steps[number]
        print(f"step {number} {step.name}: {step.state}", flush=True)  # noqa: T201


def _show_failures(run_id: str) -> None:
    """Print what steps that failed have printed, which lies in files of the run."""
    run = _find(run_id)
    for step in [] if run is None else run.steps:
        if str(step.state) == "failed":
            printed = "".join(run.logs(step.number))
            print(f"step {step.number} {step.name} has printed:\n{printed}\n{step.error}", file=sys.stderr)  # noqa: T201
    sys.stderr.flush()
