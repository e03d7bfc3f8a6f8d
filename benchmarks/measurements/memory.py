"""How much memory does the driver hold after 10,000 trials?"""

from __future__ import annotations

from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

OURS = "Cargobike, drawn at random"
OURS_AUTO = "Cargobike, default optimizer"
OPTUNA = "Optuna journal, drawn at random"


def _cases(quick: bool) -> Sequence[Case]:
    count = "1000" if quick else "10000"
    return [
        Case(label=OURS, program="ours.py", arguments=("memory", count, "randomsearch"), timeout_s=900),
        Case(label=OURS_AUTO, program="ours.py", arguments=("memory", count, "auto"), timeout_s=900),
        Case(
            label=OPTUNA,
            program="peers/optuna_tasks.py",
            arguments=("memory", count),
            venv="optuna",
            timeout_s=900,
        ),
    ]


def _read(case: Case, run: Run) -> Figures:
    names = ("trials", "rss_mb", "pss_mb", "peak_rss_mb")
    return {name: float(run.answer[name]) for name in names}


def _targets(samples: Samples) -> Sequence[Target]:
    rss, pss = (samples.ratio(OURS, OPTUNA, figure) for figure in ("rss_mb", "pss_mb"))
    return [
        Target(
            text="driver memory at most Optuna's (resident)",
            found=show(rss, ".2f", " × its memory"),
            met=None if rss is None else rss <= 1,
        ),
        Target(
            text="driver memory at most Optuna's (proportional: shared pages divided)",
            found=show(pss, ".2f", " × its memory"),
            met=None if pss is None else pss <= 1,
        ),
    ]


MEASUREMENT = Measurement(
    name="memory",
    title="Memory of the driver after 10,000 trials (1,000 with --quick)",
    cases=_cases,
    read=_read,
    columns=[
        ("trials", "trials", ",.0f"),
        ("rss_mb", "RSS MiB", ".1f"),
        ("pss_mb", "PSS MiB", ".1f"),
        ("peak_rss_mb", "peak RSS MiB", ".1f"),
    ],
    compare=("rss_mb", OPTUNA),
    targets=_targets,
    rounds=(2, 1),
    note=(
        "Ours with the result object alive; Optuna's the smaller of its two optimizing processes, at the "
        "end of its loop. The default optimizer, auto, brings NumPy and a model of what it has seen."
    ),
)
