"""How long from `python script.py` to the first line of the first trial, and until a single trial is done?"""

from __future__ import annotations

from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

OURS = "Cargobike"
FLOOR = "floor"
OPTUNA = "Optuna journal"
RAY = "Ray Tune"
SYNE = "Syne Tune"


def _cases(quick: bool) -> Sequence[Case]:
    return [
        Case(label=FLOOR, program="peers/floor.py", arguments=("first",)),
        Case(label=OURS, program="ours.py", arguments=("first", "fresh")),
        Case(label=f"{OURS}, reuse", program="ours.py", arguments=("first", "reuse")),
        Case(label=OPTUNA, program="peers/optuna_tasks.py", arguments=("first",), venv="optuna"),
        Case(label=RAY, program="peers/ray_tasks.py", arguments=("first",), venv="ray", rounds=4),
        Case(label=SYNE, program="peers/syne_tune_tasks.py", arguments=("first",), venv="syne-tune"),
    ]


def _read(case: Case, run: Run) -> Figures:
    return {"first_s": run.marks["first"], "total_s": run.wall_s, "cpu_s": run.cpu_s}


def _targets(samples: Samples) -> Sequence[Target]:
    optuna = samples.ratio(OURS, OPTUNA, "first_s")
    ray = samples.ratio(RAY, OURS, "first_s")
    return [
        Target(
            text="first trial no later than Optuna's journal study (isolation by default)",
            found=show(optuna, ".2f", " × its time"),
            met=None if optuna is None else optuna <= 1,
        ),
        Target(
            text="first trial at least 20 times sooner than Ray Tune's",
            found=show(ray, ".0f", " × sooner"),
            met=None if ray is None else ray >= 20,
        ),
    ]


MEASUREMENT = Measurement(
    name="first-trial",
    title="From `python script.py` to the first trial's first line, and for a whole 1-trial experiment",
    cases=_cases,
    read=_read,
    columns=[
        ("first_s", "first line s", ".3f"),
        ("total_s", "whole experiment s", ".3f"),
        ("cpu_s", "CPU s", ""),
    ],
    compare=("first_s", OPTUNA),
    targets=_targets,
    marks=("first",),
    rounds=(9, 3),
    note="Optuna runs the trial in the very process that was started; all others start at least one more.",
)
