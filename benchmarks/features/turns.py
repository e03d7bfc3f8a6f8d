"""Run measured programs in turn, each in a process of its own, and read the answer that it prints as its last line."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rig import findings as findings  # noqa: E402 - found by the line above, also in an environment of a peer
from rig import machine, venvs  # noqa: E402

Figures = dict[str, float]


def cpu_s() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def timed(call: Callable[[], Any]) -> tuple[Any, Figures]:
    """Return what a call gives, with its wall and CPU time and the most memory that this process ever had."""
    cpu, began = cpu_s(), time.perf_counter()
    given = call()
    found = {"wall": time.perf_counter() - began, "cpu": cpu_s() - cpu}
    return given, {**found, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def percentiles(call: Callable[[Any], object], arguments: Iterable[Any]) -> tuple[float, float]:
    """Return p50 and p99 of a call, in microseconds."""
    taken = []
    for argument in arguments:
        began = time.perf_counter_ns()
        call(argument)
        taken.append((time.perf_counter_ns() - began) / 1000)
    taken.sort()
    return taken[len(taken) // 2], taken[int(len(taken) * 0.99)]


def answer(figures: Mapping[str, float]) -> None:
    """Print what was measured; the last thing that a measured program does."""
    print("\n" + json.dumps(figures), flush=True)


def run(program: str, *arguments: str, venv: str = "") -> Figures:
    """Run a program of this folder, and return its answer.

    Args:
        program: Its file.
        arguments: What it is called with.
        venv: The peer whose environment it runs in; by default ours.
    """
    python = str(venvs.python_of(venv, HERE.parent.parent)) if venv else sys.executable
    surroundings = {name: value for name, value in os.environ.items() if not venv or name != "PYTHONPATH"}
    surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [python, str(HERE / program), *arguments], check=False, capture_output=True, text=True, env=surroundings
    )
    if done.returncode:
        raise SystemExit(f"{program} {' '.join(arguments)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    found: Figures = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found


def median(runs: Sequence[Figures], what: str) -> float:
    """Return the median of a figure."""
    return statistics.median(each[what] for each in runs)


def print_machine() -> None:
    """Print what a reader needs in order to judge the figures."""
    facts = machine.facts()
    print(f"{facts['processor']}, {facts['cores']} cores, load {machine.load()}", flush=True)


def parser_for(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the arguments of a measurement; what its own processes are told is hidden."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    return parser
