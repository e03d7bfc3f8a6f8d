"""What does a `report` cost the train function, and is every point kept?"""

from __future__ import annotations

from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

OURS = "Cargobike"
FLOOR = "floor"
OPTUNA = "Optuna journal"


def _cases(quick: bool) -> Sequence[Case]:
    many, some = ("5000", "200") if quick else ("20000", "500")
    return [
        Case(label=FLOOR, program="peers/floor.py", arguments=("report", many)),
        Case(label=OURS, program="ours.py", arguments=("report", many)),
        Case(label=OPTUNA, program="peers/optuna_tasks.py", arguments=("report", some), venv="optuna"),
        Case(label="Ray Tune", program="peers/ray_tasks.py", arguments=("report", some), venv="ray", rounds=2),
        Case(
            label="Syne Tune",
            program="peers/syne_tune_tasks.py",
            arguments=("report", "2000"),
            venv="syne-tune",
            rounds=3,
        ),
    ]


def _read(case: Case, run: Run) -> Figures:
    lost = run.answer["sent"] - run.answer["kept"]
    return {"us": run.answer["us"], "cpu_us": run.answer["cpu_us"], "sent": run.answer["sent"], "lost": lost}


def _targets(samples: Samples) -> Sequence[Target]:
    cost_us = samples.median(OURS, "us")
    lost = samples.of(OURS, "lost")
    return [
        Target(
            text="a report takes less than 20 µs",
            found=show(cost_us, ".1f", " µs"),
            met=None if cost_us is None else cost_us < 20,
            kind="information",
        ),
        Target(
            text="no report is lost",
            found=f"{sum(lost):.0f} lost of {sum(samples.of(OURS, 'sent')):.0f}" if lost else "not measured",
            met=not any(lost) if lost else None,
        ),
    ]


MEASUREMENT = Measurement(
    name="report",
    title="Cost of a report inside a trial",
    cases=_cases,
    read=_read,
    columns=[
        ("us", "µs per report", ""),
        ("cpu_us", "CPU µs in the trial", ""),
        ("sent", "sent", ",.0f"),
        ("lost", "lost", ",.0f"),
    ],
    compare=("us", OPTUNA),
    targets=_targets,
    note=(
        "Optuna's cost is a forced write; Ray Tune's a round trip; Syne Tune prints a line; ours and the "
        "floor send and go on."
    ),
)
