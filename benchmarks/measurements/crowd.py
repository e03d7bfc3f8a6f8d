"""How well are many workers on one machine kept at work, and what do they cost?"""

from __future__ import annotations

from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

WANTED = {2: 0.98, 8: 0.98, 32: 0.97, 128: 0.95}
MOST_PROCESSES = 260
MOST_PSS_MB = 600


def _label(workers: int) -> str:
    return f"{workers} workers"


def _cases(quick: bool) -> Sequence[Case]:
    rounds = "4" if quick else "10"
    return [
        Case(label=_label(workers), program="ours.py", arguments=("crowd", str(workers), rounds, "1.0"), timeout_s=300)
        for workers in WANTED
    ]


def _read(case: Case, run: Run) -> Figures:
    return {name: float(run.answer[name]) for name in ("of_ideal", "processes", "tree_pss_mb")}


def _targets(samples: Samples) -> Sequence[Target]:
    targets = []
    for workers, wanted in WANTED.items():
        found = samples.median(_label(workers), "of_ideal")
        targets.append(
            Target(
                text=f"trials that sleep, {workers} workers: at least {wanted:.0%} of what {workers} workers could do",
                found=show(found, ".1%"),
                met=None if found is None else found >= wanted,
            )
        )
    processes, pss_mb = (samples.median(_label(128), name) for name in ("processes", "tree_pss_mb"))
    return [
        *targets,
        Target(
            text=f"128 workers: at most {MOST_PROCESSES} processes",
            found=show(processes, ".0f"),
            met=None if processes is None else processes <= MOST_PROCESSES,
        ),
        Target(
            text=f"128 workers: at most {MOST_PSS_MB} MB in all (proportional: shared pages divided)",
            found=show(pss_mb, ".0f", " MiB"),
            met=None if pss_mb is None else pss_mb <= MOST_PSS_MB,
            kind="information",
        ),
    ]


MEASUREMENT = Measurement(
    name="crowd",
    title='Many workers on one machine, trials that sleep for a second (isolation="reuse")',
    cases=_cases,
    read=_read,
    columns=[
        ("of_ideal", "share of ideal", ".1%"),
        ("processes", "processes", ".0f"),
        ("tree_pss_mb", "PSS MiB, all processes", ".0f"),
    ],
    compare=("processes", _label(2)),
    targets=_targets,
    rounds=(3, 1),
    note=(
        "The share counts from the start of the first trial to the end of the last, so that starting the workers one "
        'after the other is part of what is lost. With isolation="fresh" each worker has a template more, and a '
        "spare process from its second trial on."
    ),
)
