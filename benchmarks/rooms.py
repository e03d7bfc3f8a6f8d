"""The programs that measure one room each; `run.py` starts them in turn, and reads what they hand on.

Each can be run for itself, with more to choose from: `python benchmarks/PROGRAM --help`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from rig import findings
from rig.findings import Finding
from rig.measuring import BENCHMARKS, ROOT

Size = Literal["usual", "brief", "quick"]
"""How much is measured: everything, the same with fewer rounds, or only whether it works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomProgram:
    """A program that measures a part of a room.

    Attributes:
        room: The room.
        name: For `--only`.
        question: What it answers, with the peers that are beside us.
        program: Path below `benchmarks/`.
        usual: What it is called with.
        brief: What it is called with for results in less time, where that differs from `usual`.
        quick: What it is called with when only a look is wanted.
        timeout_s: When to give up.
    """

    room: str
    name: str
    question: str
    program: str
    usual: tuple[str, ...] = ()
    brief: tuple[str, ...] | None = None
    quick: tuple[str, ...] = ()
    timeout_s: float = 1800.0

    def run(self, size: Size) -> Finding:
        """Run it to its end, its output passed on; returns what it found, without targets if it failed."""
        shorter = self.usual if self.brief is None else self.brief
        arguments = {"usual": self.usual, "brief": shorter, "quick": self.quick}[size]
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            path, output = Path(folder) / "findings.json", Path(folder) / "output.txt"
            paths = f"{ROOT / 'src'}{os.pathsep}{BENCHMARKS}"
            environment = {**os.environ, findings.FINDINGS: str(path), "PYTHONPATH": paths}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            command = [sys.executable, str(BENCHMARKS / self.program), *arguments]
            # Into a file and not a pipe: a pipe stays open as long as anything that the program has started.
            with output.open("w", encoding="utf-8") as written, output.open(encoding="utf-8") as seen:
                process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=written)
                ended = _pass_on(process, seen, self.timeout_s)
            if ended:
                print(f"{self.name} {ended}", file=sys.stderr, flush=True)
            return Finding(findings.read_handed_on(path), findings.report_of(output.read_text(encoding="utf-8")))


def _pass_on(process: subprocess.Popen[bytes], output: TextIO, timeout_s: float) -> str:
    """Print what a program writes until it ends; returns what went wrong, empty if nothing did."""
    deadline = time.monotonic() + timeout_s
    try:
        while True:
            code = _end_of(process)
            print(output.read(), end="", flush=True)
            if code is not None:
                return f"ended with {code}" if code else ""
            if time.monotonic() > deadline:
                return f"did not end within {timeout_s:.0f} s"
    finally:
        process.kill()
        process.wait()


def _end_of(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        return None


ROOMS: Sequence[RoomProgram] = (
    RoomProgram(
        room="data",
        name="loaders",
        question="How many rows a second do loaders give? Beside petastorm, torch, tf.data, Hugging Face, Ray Data.",
        program="data/compare_loaders.py",
        brief=("--rounds", "1"),
        quick=("--rounds", "1", "--table", "higgs", "--only", "torch"),
        timeout_s=3600.0,
    ),
    RoomProgram(
        room="features",
        name="feature-groups",
        question="How fast do groups take rows?",
        program="features/groups.py",
        brief=("--rounds", "1"),
        quick=("--rows", "100000", "--large", "200000", "--rounds", "1"),
    ),
    RoomProgram(
        room="features",
        name="joins",
        question="What does a join that is right in time cost? Beside bare DuckDB and Feast.",
        program="features/join.py",
        brief=("--rounds", "2"),
        quick=("--rows", "100000", "--labels", "20000", "--rounds", "1", "--feast-rounds", "0"),
    ),
    RoomProgram(
        room="features",
        name="look-ups",
        question="How long does an online look-up take, in each store? Beside Feast.",
        program="features/online.py",
        brief=("--rounds", "1"),
        quick=("--keys", "20000", "--stores", "sqlite", "--rounds", "1"),
    ),
    RoomProgram(
        room="models",
        name="registry",
        question="How long does a large registry take to list?",
        program="models/listing.py",
    ),
    RoomProgram(
        room="serving",
        name="requests",
        question="How many requests a second, and at what cost? Beside FastAPI, MLServer, LitServe and BentoML.",
        program="serving/http_load.py",
        usual=("--servers", "ours", "ours-without-log", "fastapi", "mlserver", "litserve", "bentoml"),
        brief=(
            *("--servers", "ours", "ours-without-log", "fastapi", "mlserver", "litserve", "bentoml"),
            *("--rounds", "1", "--seconds", "6"),
        ),
        quick=("--servers", "ours", "ours-without-log", "--callers", "16", "--seconds", "3", "--rounds", "1"),
    ),
    RoomProgram(
        room="serving",
        name="rolls",
        question="Does a request fail while versions change under load?",
        program="serving/rolls.py",
        brief=("--rolls", "25", "--steps", "3"),
        quick=("--rolls", "3", "--steps", "1"),
    ),
    RoomProgram(
        room="monitoring",
        name="shift",
        question="Is a shift seen, how often falsely, at what cost? Beside alibi-detect, frouros, evidently and river.",
        program="monitoring/shift.py",
        brief=("--windows", "300", "--large", "30", "--peer-windows", "20"),
        quick=("--windows", "60", "--large", "5", "--no-peers"),
    ),
    RoomProgram(
        room="pipelines",
        name="steps",
        question="What does a step cost besides its work? Beside Prefect, Dagster and Airflow.",
        program="pipelines/step_overhead.py",
        usual=("--peers",),
        quick=("--steps", "50", "--all-steps", "500"),
    ),
    RoomProgram(
        room="dashboard",
        name="dashboards",
        question="How soon is a page of 10,000 trials there? Beside MLflow and optuna-dashboard.",
        program="ui/dashboards.py",
        brief=("--rounds", "2"),
        quick=("--quick", "--rounds", "1"),
    ),
    RoomProgram(
        room="dashboard",
        name="many-objects",
        question="How long do pages take with 10,000 things of each kind?",
        program="ui/many_objects.py",
        brief=("--rounds", "3"),
        quick=("--count", "300", "--rounds", "2"),
    ),
    RoomProgram(
        room="sharing",
        name="transfers",
        question="How fast are transfers on one machine? Beside libtorrent.",
        program="sharing/speed.py",
        brief=("--mb", "300"),
        quick=("--mb", "50"),
    ),
)
