"""What a measurement is, and how its cases are run: in rounds, everybody in turn, in fresh processes."""

from __future__ import annotations

import compileall
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rig import machine, processes, venvs
from rig.processes import Run

BENCHMARKS = Path(__file__).resolve().parent.parent
ROOT = BENCHMARKS.parent
OURS = BENCHMARKS / "ours.py"

Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One program with its arguments, measured under one label.

    Attributes:
        label: Its name in the table.
        program: Path below `benchmarks/`.
        arguments: What it is called with.
        venv: Whose interpreter runs it: a peer's, or `own` for the one that runs the harness.
        timeout_s: When to give up.
        rounds: At most that many rounds, for cases that take long and vary little.
        tags: Free values for the measurement's own use.
    """

    label: str
    program: str
    arguments: tuple[str, ...]
    venv: str = "own"
    timeout_s: float = 300.0
    rounds: int = 99
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One promise and what was found.

    Attributes:
        text: The promise.
        found: What was measured, ready to be shown.
        met: Whether it holds; `None` if it could not be measured.
        kind: A `gate` compares within this run and should hold anywhere; `information` depends on the
            machine.
    """

    text: str
    found: str
    met: bool | None
    kind: Literal["gate", "information"] = "gate"


@dataclass(slots=True)
class Samples:
    """What the rounds of one measurement gave, by label."""

    runs: dict[str, list[Figures]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    leftovers: dict[str, int] = field(default_factory=dict)
    load: list[float] = field(default_factory=list)

    def of(self, label: str, figure: str) -> list[float]:
        """Return every sample of a figure, in the order of the rounds."""
        return [run[figure] for run in self.runs.get(label, []) if figure in run]

    def median(self, label: str, figure: str) -> float | None:
        """Return the median of a figure, `None` if it was not measured."""
        found = self.of(label, figure)
        return statistics.median(found) if found else None

    def ratio(self, above: str, below: str, figure: str) -> float | None:
        """Return the median of the ratios within each round: noise that lasts longer than a round cancels."""
        pairs = list(zip(self.of(above, figure), self.of(below, figure), strict=False))
        usable = [left / right for left, right in pairs if right]
        return statistics.median(usable) if usable else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A question, the cases that answer it, and what was promised.

    Attributes:
        name: For `--only`.
        title: The question.
        cases: Makes the list of cases; `quick` asks for small ones.
        read: Turns one run of a case into named figures.
        columns: Which figures the table shows: name, heading, format (empty: three digits that count).
        compare: Figure and label that the table's ratios refer to.
        targets: Judges the samples.
        marks: Times that the programs mark.
        rounds: How often each case is run, usually and with `--quick`.
        note: A sentence below the table.
    """

    name: str
    title: str
    cases: Callable[[bool], Sequence[Case]]
    read: Callable[[Case, Run], Figures]
    columns: Sequence[tuple[str, str, str]]
    compare: tuple[str, str]
    targets: Callable[[Samples], Sequence[Target]]
    marks: Sequence[str] = ()
    rounds: tuple[int, int] = (5, 2)
    note: str = ""


def compile_own_code() -> None:
    """Compile our checkout to bytecode, as pip has done with the peers when it installed them."""
    for folder in (ROOT / "src", BENCHMARKS / "rig"):
        compileall.compile_dir(folder, quiet=2)


def measure(measurement: Measurement, *, quick: bool, most_rounds: int = 100) -> Samples:
    """Run all rounds of a measurement, or fewer; a case that fails is noted and not tried again."""
    samples = Samples()
    cases = measurement.cases(quick)
    for number in range(min(most_rounds, measurement.rounds[1 if quick else 0])):
        for case in cases:
            if number >= case.rounds or case.label in samples.errors:
                continue
            samples.load.append(machine.load())
            print(f"  {measurement.name} round {number + 1}: {case.label}", file=sys.stderr, flush=True)
            try:
                done = run_case(case, measurement.marks)
                samples.runs.setdefault(case.label, []).append(measurement.read(case, done))
                samples.leftovers[case.label] = samples.leftovers.get(case.label, 0) + done.leftovers
            # A peer that cannot be installed is one case that failed, too.
            except (processes.RunFailed, subprocess.CalledProcessError, OSError, KeyError, ValueError) as error:
                samples.errors[case.label] = str(error) or repr(error)
                print(f"    failed: {error}", file=sys.stderr, flush=True)
    return samples


def run_case(case: Case, marks: Sequence[str] = ()) -> Run:
    """Run one case once.

    Our program lies in a folder of its own, as a user's would: it keeps the sources around it with each experiment, and
    here these would be the two thousand files of our checkout.
    """
    program = BENCHMARKS / case.program
    is_users = program == OURS
    python = sys.executable if case.venv == "own" else str(venvs.python_of(case.venv, ROOT))
    paths = [str(BENCHMARKS)] + ([str(ROOT / "src")] if case.venv == "own" else [])
    return processes.run(
        [python, program.name if is_users else str(program), *case.arguments],
        env={"PYTHONPATH": ":".join(paths)},
        timeout_s=case.timeout_s,
        marks=marks,
        copies=[program] if is_users else [],
    )


def show(value: float | None, form: str = ".3g", unit: str = "") -> str:
    """Format a figure that may be missing."""
    return "not measured" if value is None else f"{value:{form}}{unit}"
