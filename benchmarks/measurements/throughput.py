"""How many trials that do nothing pass through in a second, with two workers in processes of their own?"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

OURS_POWER = "Cargobike, reuse, power"
OURS_PROCESS = "Cargobike, reuse, process"
OURS_FRESH = "Cargobike, fresh"
OURS_FEW_FRESH = "Cargobike, fresh, few"
FLOOR_POWER = "floor, power"
FLOOR_PROCESS = "floor, process"
OPTUNA = "Optuna journal, 2 processes"
RAY_REUSE = "Ray Tune, reused actors"
RAY_FRESH = "Ray Tune, fresh actors"
SYNE = "Syne Tune, poll 50 ms"
FRESH, FEW_FRESH = 400, 10


def _cases(quick: bool) -> Sequence[Case]:
    share = 4 if quick else 1
    many, some = str(4000 // share), str(1000 // share)

    def ours(label: str, count: str, *settings: str) -> Case:
        return Case(label=label, program="ours.py", arguments=("throughput", count, *settings), tags=("ours",))

    def floor(label: str, durability: str) -> Case:
        return Case(label=label, program="peers/floor.py", arguments=("throughput", many, durability))

    def ray(label: str, count: int, isolation: str) -> Case:
        arguments = ("throughput", str(count // share), isolation)
        return Case(label=label, program="peers/ray_tasks.py", arguments=arguments, venv="ray", rounds=3)

    return [
        floor(FLOOR_PROCESS, "process"),
        ours(OURS_PROCESS, many, "reuse", "process"),
        floor(FLOOR_POWER, "power"),
        ours(OURS_POWER, many, "reuse", "power"),
        Case(label=OPTUNA, program="peers/optuna_tasks.py", arguments=("throughput", some), venv="optuna"),
        ours(OURS_FRESH, str(FRESH // share), "fresh", "process"),
        ours(OURS_FEW_FRESH, str(FEW_FRESH), "fresh", "process"),
        ray(RAY_REUSE, 120, "reuse"),
        ray(RAY_FRESH, 16, "fresh"),
        Case(
            label=SYNE,
            program="peers/syne_tune_tasks.py",
            arguments=("throughput", str(20 // share)),
            venv="syne-tune",
            rounds=3,
        ),
    ]


def _read(case: Case, run: Run) -> Figures:
    trials = run.answer["trials"]
    return {
        "per_s": trials / run.answer["seconds"],
        "per_s_of_call": trials / run.answer["call_s"],
        "cpu_ms": run.cpu_s / trials * 1e3,
        "cpu_s": run.cpu_s,
        "trials": trials,
    }


def _cpu_ms_of_more(samples: Samples, many: str, few: str) -> float | None:
    """Return what one trial more costs: the difference between many and few, so that start-up does not count."""
    rounds = zip(*(samples.of(label, figure) for label in (many, few) for figure in ("cpu_s", "trials")), strict=False)
    costs = [(more_s - less_s) / (more - less) * 1e3 for more_s, more, less_s, less in rounds]
    return statistics.median(costs) if costs else None


def _targets(samples: Samples) -> Sequence[Target]:
    power = samples.ratio(OURS_POWER, OPTUNA, "per_s")
    process = samples.ratio(OURS_PROCESS, FLOOR_PROCESS, "per_s")
    fresh_ms = _cpu_ms_of_more(samples, OURS_FRESH, OURS_FEW_FRESH)
    fresh = samples.ratio(OURS_FRESH, RAY_FRESH, "per_s")
    return [
        Target(
            text="reuse, forced to disk: at least 10 × Optuna's journal storage",
            found=show(power, ".1f", " ×"),
            met=None if power is None else power >= 10,
        ),
        Target(
            text="reuse, surviving kill -9 only: at least 0.4 of two bare processes on pipes",
            found=show(process, ".2f", " of them"),
            met=None if process is None else process >= 0.4,
        ),
        Target(
            text="a fresh process for each trial: at most 3 ms of CPU, start-up left out (a bare fork: 1.8)",
            found=show(fresh_ms, ".1f", " ms"),
            met=None if fresh_ms is None else fresh_ms <= 3,
            kind="information",
        ),
        Target(
            text="a fresh process for each trial: at least 50 × Ray Tune's fresh actors",
            found=show(fresh, ".0f", " ×"),
            met=None if fresh is None else fresh >= 50,
        ),
    ]


MEASUREMENT = Measurement(
    name="throughput",
    title="No-op trials per second, 2 workers in separate processes",
    cases=_cases,
    read=_read,
    columns=[
        ("per_s", "trials/s", ""),
        ("per_s_of_call", "trials/s, whole call", ""),
        ("cpu_ms", "CPU ms/trial", ""),
    ],
    compare=("per_s", OPTUNA),
    targets=_targets,
    note=(
        "trials/s counts from the start of the first trial to the end of the last; the whole call adds "
        "starting and stopping workers. CPU counts the whole process tree with start-up, which weighs "
        "heavily where few trials were run (Ray Tune, Syne Tune). `power`: every event is forced to disk "
        "before it is acted on, several at a time; `process`: every event survives `kill -9` of the "
        "driver, not a power cut."
    ),
)
