"""What the driver needs for very many trials on very many workers, in virtual time: memory, and CPU for each event.

    python benchmarks/search/large.py                                      # 100,000 trials on 10 and on 10,000 workers
    python benchmarks/search/large.py --trials 10000 --only asha --only auto  # a look

Each search runs in a process of its own, whose peak of memory is that of scheduler, optimizer, record and simulated
workers together. An event is what the scheduler handles: a worker that joins, a report at a milestone, an end.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

NAMES = ["randomsearch", "sobol", "gridsearch", "asha", "hyperband", "de", "tpe", "bohb", "dehb", "auto", "pbt"]
EPOCHS = 9


def measure(name: str, trials: int, workers: int) -> dict[str, Any]:
    """Run one search and return what it took."""
    from cargobike import Searchspace
    from cargobike.experiments.scheduling.simulation import SimulatedRun, simulate
    from cargobike.optimizers import PopulationBasedTraining

    space = Searchspace(
        rate=("DOUBLE", [1e-5, 1.0], "log", {"points": 1000})
        if name == "gridsearch"
        else ("DOUBLE", [1e-5, 1.0], "log"),
        layers=("INTEGER", [1, 10]),
        width=("DISCRETE", [16, 32, 64, 128, 256]),
        act=["relu", "tanh", "gelu"],
    )

    def train(params: dict[str, Any], seed: int) -> SimulatedRun:
        end = abs(params["layers"] - 4) / 10 + params["rate"] + (params["act"] == "tanh") / 10
        pace = 0.5 + (seed % 997) / 997  # no two trials take equally long, so that events do not come all at once
        return SimulatedRun(steps=[(pace, {"loss": end + 1 / epoch}) for epoch in range(1, EPOCHS + 1)], value=end)

    optimizer = PopulationBasedTraining(workers, interval=3) if name == "pbt" else name  # by default it has 8
    before = _peak_mb()
    began = time.process_time()
    result = simulate(train, space, optimizer=optimizer, num_trials=trials, workers=workers, direction="min", seed=1)
    return {
        "trials": len(result.trials),
        "events": result.events,
        "us_per_event": result.driver_us_per_event,
        "cpu_s": time.process_time() - began,
        "memory_mb": _peak_mb() - before,
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--workers", type=int, action="append", help="may be repeated; 10 and 10,000 by default")
    parser.add_argument("--only", choices=NAMES, action="append", help="may be repeated")
    parser.add_argument("--minutes", type=float, default=30.0, help="of processor time for each search")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "TRIALS", "WORKERS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, trials, workers = options.one
        print(json.dumps(measure(name, int(trials), int(workers))))
        return
    print("| optimizer | workers | trials | events | µs per event | CPU s | peak MB |", flush=True)
    print("| --- |" + " ---: |" * 6, flush=True)
    for name in options.only or NAMES:
        for workers in options.workers or (10, 10_000):
            command = [sys.executable, __file__, "--one", name, str(options.trials), str(workers)]
            limit_s = int(60 * options.minutes)
            done = subprocess.run(
                ["prlimit", f"--cpu={limit_s}:{limit_s + 5}", *command], capture_output=True, text=True, check=False
            )
            if done.returncode:
                last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
                why = last[0] if last else f"gave up after {options.minutes:g} minutes of processor time"
                print(f"| {name} | {workers:,} | {why} | | | | |", flush=True)
                continue
            told = json.loads(done.stdout)
            print(
                f"| {name} | {workers:,} | {told['trials']:,} | {told['events']:,} | {told['us_per_event']:.0f} "
                f"| {told['cpu_s']:.0f} | {told['memory_mb']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
