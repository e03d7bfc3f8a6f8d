"""How soon is it noticed that a worker was killed?"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

OURS = "Cargobike"


def _cases(quick: bool) -> Sequence[Case]:
    count = "3" if quick else "8"
    return [
        Case(label="floor", program="peers/floor.py", arguments=("lost", count)),
        Case(label=OURS, program="ours.py", arguments=("lost", count)),
        Case(label="Ray Tune", program="peers/ray_tasks.py", arguments=("lost", "3"), venv="ray", rounds=2),
        Case(
            label="Syne Tune, poll 50 ms",
            program="peers/syne_tune_tasks.py",
            arguments=("lost", "3"),
            venv="syne-tune",
            rounds=2,
        ),
    ]


def _read(case: Case, run: Run) -> Figures:
    return {"ms": statistics.median(run.answer["ms"]), "worst_ms": max(run.answer["ms"])}


def _targets(samples: Samples) -> Sequence[Target]:
    found = samples.median(OURS, "ms")
    return [
        Target(
            text="a lost worker is noticed within 100 ms, by its closed connection",
            found=show(found, ".1f", " ms"),
            met=None if found is None else found <= 100,
            kind="information",
        )
    ]


MEASUREMENT = Measurement(
    name="lost-worker",
    title="From `kill -9` of a worker until the driver knows",
    cases=_cases,
    read=_read,
    columns=[("ms", "median ms", ""), ("worst_ms", "worst ms", "")],
    compare=("ms", "floor"),
    targets=_targets,
    rounds=(3, 1),
    note="Optuna is missing here: on journal storage the trial of a killed process stays RUNNING for ever.",
)
