"""Does a gang train as fast as the same program under torchrun?"""

from __future__ import annotations

from collections.abc import Sequence

from rig.measuring import Case, Figures, Measurement, Samples, Target, show
from rig.processes import Run

OURS, PEER = "Cargobike", "torchrun"
_PROGRAM = "peers/gang_program.py"
_MOST_BELOW = 0.03


def _cases(quick: bool) -> Sequence[Case]:
    steps = "60" if quick else "400"
    return [
        Case(label=PEER, program=_PROGRAM, arguments=("torchrun", steps)),
        Case(label=OURS, program=_PROGRAM, arguments=("cargobike", steps)),
        # A second turn for each in the other order: what comes first in a round has no advantage.
        Case(label=OURS, program=_PROGRAM, arguments=("cargobike", steps)),
        Case(label=PEER, program=_PROGRAM, arguments=("torchrun", steps)),
    ]


def _read(case: Case, run: Run) -> Figures:
    return {**{name: float(value) for name, value in run.answer.items()}, "first_s": run.marks["first-step"]}


def _targets(samples: Samples) -> Sequence[Target]:
    return [
        _target(samples, "first_s", "the first step comes no later than under torchrun", is_time=True),
        _target(samples, "steps_per_s", "steps per second are those of torchrun"),
        *(_target(samples, f"reduce_{size}", f"so is the bandwidth of {size} MiB all-reduces") for size in (1, 16, 64)),
    ]


def _target(samples: Samples, figure: str, text: str, *, is_time: bool = False) -> Target:
    ratio = samples.ratio(OURS, PEER, figure)
    worse = None if ratio is None else ratio - 1 if is_time else 1 - ratio
    return Target(
        text=f"{text}, within {_MOST_BELOW:.0%}",
        found=show(ratio, ".3f", " times"),
        met=None if worse is None else worse <= _MOST_BELOW,
        kind="information",
    )


MEASUREMENT = Measurement(
    name="gang",
    title="The same DDP program, two ranks on this machine, under torchrun and as a gang",
    cases=_cases,
    read=_read,
    columns=[
        ("first_s", "first step s", ""),
        ("steps_per_s", "steps/s", ""),
        ("reduce_1", "1 MiB: MiB/s", ""),
        ("reduce_16", "16 MiB: MiB/s", ""),
        ("reduce_64", "64 MiB: MiB/s", ""),
    ],
    compare=("steps_per_s", PEER),
    targets=_targets,
    marks=("first-step",),
    rounds=(8, 1),
    note="Two ranks and nothing else on two cores: whatever runs besides is shared unequally; believe quiet runs only.",
)
