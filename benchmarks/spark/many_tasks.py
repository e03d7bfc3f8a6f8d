"""Very many Spark tasks at once on one machine: how much memory they take, and whether all of them work.

    python benchmarks/spark/many_tasks.py                       # 8, 32, then 200 tasks, as far as memory allows
    python benchmarks/spark/many_tasks.py --tasks 64 --keep-gb 8

Each worker is a Spark task, and each trial sleeps: tasks cost memory and processes, and hardly any time of the cores. A
size is not tried if what the sizes before took for each task would leave less memory than `--keep-gb`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rig.answers import tree_memory

SLEEP_S = 20.0


def train(i: int) -> float:
    """Sleep, so that all trials are there at once."""
    time.sleep(SLEEP_S)
    return float(i)


def measure(tasks: int) -> None:
    """Run two trials for each task, and print what it took."""
    from cargobike import Searchspace, experiment
    from cargobike.engines import SparkEngine

    most: dict[str, float] = {"processes": 0, "tree_pss_mb": 0.0}
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(5.0):
            for name, value in tree_memory().items():
                most[name] = max(most[name], value)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    begun, busy = time.perf_counter(), os.times()
    result = experiment.launch(
        train,
        Searchspace(i=("INTEGER", [1, 2 * tasks])),
        optimizer="grid",
        engine=SparkEngine(master=f"local[{tasks}]"),
        workers=tasks,
        quiet=True,
    )
    took_s = time.perf_counter() - begun
    is_over.set()
    watching.join()
    now = os.times()
    cpu_s = sum(now[:4]) - sum(busy[:4])
    completed = sum(trial.state.value == "completed" for trial in result.trials)
    attempts = sum(trial.attempts for trial in result.trials)
    print(
        json.dumps({"tasks": tasks, "completed": completed, "attempts": attempts, "s": took_s, "cpu_s": cpu_s, **most})
    )


def available_mb() -> float:
    """Return how much memory the machine could give now."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, action="append", help="may be repeated; 8, 32 and 200 by default")
    parser.add_argument("--keep-gb", type=float, default=4.0, help="memory that must be left over")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each size")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.one)
        return
    print("| tasks | trials completed | attempts | s | CPU s | processes | memory MB (PSS) | MB for each task |")
    print("| ---: |" + " ---: |" * 7, flush=True)
    per_task = 0.0
    for tasks in options.tasks or (8, 32, 200):
        left = available_mb() - tasks * per_task
        if left < 1024 * options.keep_gb:
            print(f"| {tasks} | not tried: {left:,.0f} MB of memory would be left | | | | | | |", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="many-tasks-") as folder:
            command = [sys.executable, __file__, "--one", str(tasks)]
            environment = os.environ | {"CARGOBIKE_PROJECT": f"{folder}/project"}
            try:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=60 * options.minutes,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                print(f"| {tasks} | gave up after {options.minutes:g} minutes | | | | | | |", flush=True)
                continue
        if done.returncode:
            last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
            print(f"| {tasks} | {last[0] if last else 'failed'} | | | | | | |", flush=True)
            continue
        told = json.loads(done.stdout.splitlines()[-1])
        per_task = told["tree_pss_mb"] / tasks
        print(
            f"| {tasks} | {told['completed']} of {2 * tasks} | {told['attempts']} | {told['s']:.0f} "
            f"| {told['cpu_s']:.0f} | {told['processes']:.0f} | {told['tree_pss_mb']:,.0f} | {per_task:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
