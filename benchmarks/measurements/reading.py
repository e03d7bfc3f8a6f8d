"""What do readers wait for after a long search?"""

from __future__ import annotations

from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

FED = "100,000 trials, the index fed beside them"
UNFED = "the same, the index not fed"
POINTS = "1,000,000 points"
_PROGRAM = "store/reading.py"


def _cases(quick: bool) -> Sequence[Case]:
    trials, points = ("20000", "100000") if quick else ("100000", "1000000")
    return [
        Case(label=FED, program=_PROGRAM, arguments=("lists", trials, "fed"), timeout_s=900),
        Case(label=UNFED, program=_PROGRAM, arguments=("lists", trials, "unfed"), timeout_s=900, rounds=1),
        Case(label=POINTS, program=_PROGRAM, arguments=("curves", points), timeout_s=900),
    ]


def _read(case: Case, run: Run) -> Figures:
    return {name: float(value) for name, value in run.answer.items()}


def _targets(samples: Samples) -> Sequence[Target]:
    promises = [
        ("the first `cargobike ls` within 0.5 s", FED, "ls_s", 0.5, " s"),
        ("`cargobike show` within 0.3 s", FED, "show_s", 0.3, " s"),
        ("the dashboard's first page within 0.5 s", FED, "page_s", 0.5, " s"),
        ("the curves of one trial within 20 ms", POINTS, "curves_ms", 20.0, " ms"),
    ]
    return [
        Target(
            text=f"{'after 100,000 trials' if label is FED else POINTS}: {text}",
            found=show(found := samples.median(label, figure), ".3g", unit),
            met=None if found is None else found <= most,
            kind="information",
        )
        for text, label, figure, most, unit in promises
    ]


MEASUREMENT = Measurement(
    name="reading",
    title="What readers wait for after a long search",
    cases=_cases,
    read=_read,
    columns=[
        ("ls_s", "first ls, s", ".2f"),
        ("ls_cpu_s", "CPU s", ".2f"),
        ("show_s", "show, s", ".2f"),
        ("show_cpu_s", "CPU s", ".2f"),
        ("page_s", "first page, s", ".2f"),
        ("curves_ms", "curves of one trial, ms", ".2f"),
    ],
    compare=("ls_s", FED),
    targets=_targets,
    rounds=(3, 1),
    note=(
        "The journal is written at 5,000 facts a second, as by a driver whose trials do nothing. Commands are fresh "
        "processes; the page is asked for when the server has begun to answer."
    ),
)
