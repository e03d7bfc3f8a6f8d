"""Runs the cases, each as an experiment of its own, and turns what they say into outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike import experiment
from cargobike.bench.cases import Case, Outcome, Way
from cargobike.core.facts import Fact, Reported, unpack_numbers
from cargobike.core.records import ExperimentState, Resources
from cargobike.experiments.results.result import Result

LEARNING_RATE: Final = 0.1
_PROGRAM: Final = f"{Path(__file__).with_name('program.py')}:train"

Watcher = Callable[[int, Mapping[str, float]], None]
"""Is told a step and the numbers that rank 0 reported at it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs have in common."""

    steps: int = 50
    warmup: int = 5
    batch: int = 64
    servers: int = 1
    staleness: int = 8
    sync_every: int = 16
    threads: int = 1
    gpus: float | None = None
    engine: str = "local"


def measure(case: Case, settings: Settings, watch: Watcher) -> Outcome | None:
    """Run one case; returns nothing if it was interrupted."""
    params = {
        "model": case.model,
        "way": case.way,
        "steps": settings.steps,
        "warmup": settings.warmup,
        "batch": settings.batch,
        "lr": LEARNING_RATE,
        "sync_every": settings.sync_every,
    }
    common: dict[str, Any] = {
        "params": params,
        "metric": "images_per_s",
        "workers": case.workers,
        "engine": settings.engine,
        "resources": Resources(cpus=settings.threads, gpus=settings.gpus),
        "name": f"bench {case.model} {case.way} {case.workers}",
        "callbacks": [_Listener(watch)],
        "quiet": True,
    }
    if case.way == Way.ONE:
        result = experiment.launch(_PROGRAM, **common)
    elif case.way == Way.PS_SYNC:
        result = experiment.parameter_server(_PROGRAM, servers=settings.servers, staleness=0, on_stale="wait", **common)
    elif case.way == Way.PS_ASYNC:
        result = experiment.parameter_server(
            _PROGRAM, servers=settings.servers, staleness=settings.staleness, on_stale="drop", **common
        )
    else:
        result = experiment.allreduce(_PROGRAM, **common)
    return _outcome(case, result) if result.state is ExperimentState.COMPLETED else None


def _outcome(case: Case, result: Result) -> Outcome:
    found = result.trials[0].metrics
    curves = result.curves(0)
    dropped = found.get("dropped")
    return Outcome(
        case=case,
        experiment=result.id,
        images_per_s=found["images_per_s"],
        uncertainty=found["uncertainty"],
        jitter=found["jitter"],
        step_s=found["step_s"],
        alone_s=found["alone_s"],
        communication=max(0.0, 1 - found["alone_s"] / found["step_s"]),
        sent_bytes=found["sent_bytes"],
        loss=found["loss"],
        delay=found.get("delay"),
        dropped=None if dropped is None else int(dropped),
        curve=tuple(
            (int(step), float(seconds), float(loss))
            for step, seconds, loss in zip(
                curves["loss"].steps, curves["seconds"].values, curves["loss"].values, strict=True
            )
        ),
    )


class _Listener:
    """Hands on what rank 0 reports, as it comes."""

    def __init__(self, watch: Watcher) -> None:
        self._watch = watch

    def on_facts(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if isinstance(fact, Reported):
                self._watch(fact.step, unpack_numbers(fact.metrics))
