"""Does the driver's cost per event grow with the number of workers?"""

from __future__ import annotations

from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

WORKERS = (10, 100, 1_000, 10_000)
OPTIMIZERS = ("randomsearch", "asha")


def _label(workers: int, optimizer: str) -> str:
    return f"{optimizer}, {workers:,} workers"


def _cases(quick: bool) -> Sequence[Case]:
    trials = "12000" if quick else "40000"
    return [
        Case(
            label=_label(workers, optimizer),
            program="ours.py",
            arguments=("simulate", str(workers), trials, optimizer),
            timeout_s=300,
        )
        for optimizer in OPTIMIZERS
        for workers in WORKERS
    ]


def _read(case: Case, run: Run) -> Figures:
    found = run.answer
    return {
        "us": found["cpu_s"] / found["events"] * 1e6,
        "collecting_us": found["collecting_cpu_s"] / found["events"] * 1e6,
        "events": found["events"],
        "cpu_s": found["cpu_s"],
    }


def _targets(samples: Samples) -> Sequence[Target]:
    targets = []
    for optimizer in OPTIMIZERS:
        costs = [samples.median(_label(workers, optimizer), "us") for workers in WORKERS]
        known = [cost for cost in costs if cost is not None]
        spread = max(known) / min(known) if len(known) == len(costs) else None
        targets.append(
            Target(
                text=f"{optimizer}: driver CPU per event flat, within 1.5 times, from 10 to 10,000 workers",
                found=show(spread, ".2f", " × between the cheapest and the dearest"),
                met=None if spread is None else spread <= 1.5,
            )
        )
    return targets


MEASUREMENT = Measurement(
    name="simulation",
    title="Driver CPU per event in virtual time",
    cases=_cases,
    read=_read,
    columns=[
        ("us", "CPU µs per event", ""),
        ("collecting_us", "and collecting garbage", ""),
        ("events", "events", ",.0f"),
        ("cpu_s", "CPU s", ""),
    ],
    compare=("us", _label(WORKERS[0], OPTIMIZERS[0])),
    targets=_targets,
    rounds=(3, 1),
    note=(
        "The scheduler and the optimizer of real experiments (random search and ASHA, trials of four reports), "
        "driven by the simulated engine; without sockets and without the journal's disk. Collections of garbage "
        "walk over what is simulated as well, whoever sets them off, and count by themselves."
    ),
)
