"""How soon does a trial see that it was decided to stop it?"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

OURS = "Cargobike"
OURS_PUSHED = "Cargobike, Ctrl-C → should_stop"
OPTUNA = "Optuna journal (asks)"


def _cases(quick: bool) -> Sequence[Case]:
    many, few = ("30", "5") if quick else ("100", "10")
    return [
        Case(label="floor", program="peers/floor.py", arguments=("stop", many)),
        Case(label=OURS, program="ours.py", arguments=("stop", many)),
        Case(label=OURS_PUSHED, program="ours.py", arguments=("interrupt", few)),
        Case(label=OPTUNA, program="peers/optuna_tasks.py", arguments=("stop", many), venv="optuna"),
        Case(label="Ray Tune", program="peers/ray_tasks.py", arguments=("stop", few), venv="ray", rounds=2),
        Case(
            label="Syne Tune, poll 50 ms",
            program="peers/syne_tune_tasks.py",
            arguments=("stop", few),
            venv="syne-tune",
            rounds=2,
        ),
    ]


def _read(case: Case, run: Run) -> Figures:
    delays = run.answer["ms"]
    return {
        "ms": statistics.median(delays),
        "p95_ms": sorted(delays)[int(len(delays) * 0.95) - 1 if len(delays) > 1 else 0],
        "since_report_ms": statistics.median(run.answer["since_report_ms"]),
    }


def _targets(samples: Samples) -> Sequence[Target]:
    found = samples.median(OURS, "ms")
    since_report = samples.median(OURS, "since_report_ms")
    return [
        Target(
            text="a stop is seen within 1 ms (median) of being decided",
            found=show(found, ".2f", " ms"),
            met=None if found is None else found <= 1,
            kind="information",
        ),
        Target(
            text="a stop is seen within 0.8 ms (median) of the call of `report`",
            found=show(since_report, ".2f", " ms"),
            met=None if since_report is None else since_report <= 0.8,
            kind="information",
        ),
    ]


MEASUREMENT = Measurement(
    name="stop",
    title="From the decision to stop a trial until the trial sees it",
    cases=_cases,
    read=_read,
    columns=[
        ("ms", "decided → seen ms", ""),
        ("p95_ms", "95th percentile ms", ""),
        ("since_report_ms", "reported → seen ms", ""),
    ],
    compare=("since_report_ms", OPTUNA),
    targets=_targets,
    rounds=(3, 1),
    note=(
        "Optuna decides inside the trial, when the trial asks: there is nothing to deliver, and nothing "
        "arrives if it does not ask. Syne Tune finds reports by polling (here every 50 ms, every 5 s by "
        "default), then kills the process."
    ),
)
