"""Pipelines: plain functions whose calls are steps, recorded, kept and not made twice. The names below are public.

`step` makes a step of a function, `run` runs a pipeline, `resume` goes on where a run was, `schedule` runs one by
itself. The modules of this room are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.pipelines.facts import RunState, StepState
    from cargobike.pipelines.front import cause, get, list, resume, run
    from cargobike.pipelines.running import cancel
    from cargobike.pipelines.scheduling.front import Schedule, find_schedule, schedule, schedules
    from cargobike.pipelines.steps.result import StepResult
    from cargobike.pipelines.steps.step import Step, step
    from cargobike.pipelines.viewing import Run

__all__ = [
    "Run",
    "RunState",
    "Schedule",
    "Step",
    "StepResult",
    "StepState",
    "cancel",
    "cause",
    "find_schedule",
    "get",
    "list",
    "resume",
    "run",
    "schedule",
    "schedules",
    "step",
]

_FRONT = "cargobike.pipelines.front"
_SCHEDULING = "cargobike.pipelines.scheduling.front"
_SOURCES = {
    "Run": "cargobike.pipelines.viewing",
    "RunState": "cargobike.pipelines.facts",
    "Schedule": _SCHEDULING,
    "Step": "cargobike.pipelines.steps.step",
    "StepResult": "cargobike.pipelines.steps.result",
    "StepState": "cargobike.pipelines.facts",
    "cancel": "cargobike.pipelines.running",
    "cause": _FRONT,
    "find_schedule": _SCHEDULING,
    "get": _FRONT,
    "list": _FRONT,
    "resume": _FRONT,
    "run": _FRONT,
    "schedule": _SCHEDULING,
    "schedules": _SCHEDULING,
    "step": "cargobike.pipelines.steps.step",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES)


def __dir__() -> list[str]:  # type: ignore[valid-type]
    return __all__
