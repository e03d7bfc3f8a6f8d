"""What isolation costs: the time that a trial takes beyond its own work, for each way to give it a process.

    python benchmarks/isolation.py [trials]

`spawn` is what a new interpreter for each trial would cost: it starts one, imports the same library and ends. Not a
gate: the figures stand in docs/decisions/0004-isolation.md.
"""

from __future__ import annotations

import importlib
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("CARGOBIKE_PROJECT", tempfile.mkdtemp(prefix="isolation-"))

from cargobike import experiment

WORK_S = {"nothing": "pass", "torch": "import torch"}


def plain(x: float) -> float:
    return x


def with_torch(x: float) -> float:
    # Not an import statement: workers would have torch ready for the other function, too, and fork more for it.
    torch = importlib.import_module("torch")
    return float(torch.ones(4).sum()) + x


def per_trial_ms(train: object, isolation: str, trials: int) -> float:
    """Return the median time between the ends of trials on one worker, the first ones left out."""
    points = [{"x": float(number)} for number in range(trials)]
    result = experiment.launch(train, points, workers=1, isolation=isolation, quiet=True)  # type: ignore[arg-type]
    ends = sorted(one.ended_at for one in result.trials if one.ended_at is not None)[3:]
    return 1000 * statistics.median(after - before for before, after in itertools.pairwise(ends))


def spawn_ms(statement: str, trials: int) -> float:
    samples = []
    for _ in range(trials):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        samples.append(time.perf_counter() - began)
    return 1000 * statistics.median(samples)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print(f"load average {os.getloadavg()[0]:.1f}; ms for each trial, median")
    for label, train in (("nothing", plain), ("torch", with_torch)):
        reuse = per_trial_ms(train, "reuse", trials)
        fresh = per_trial_ms(train, "fresh", trials)
        spawn = spawn_ms(WORK_S[label], max(3, trials // 10))
        print(f"{label:8}  reuse {reuse:7.2f}   fresh {fresh:7.2f}   spawn {spawn:8.1f}")


if __name__ == "__main__":
    main()
