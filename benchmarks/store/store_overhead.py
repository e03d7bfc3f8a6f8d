"""What the store adds to a search whose trials do nothing: the same search with and without it, turn by turn.

    python benchmarks/store/store_overhead.py                 # about two minutes; --quick for a look
    python benchmarks/store/store_overhead.py --json out.json

Without the store means: the journal forgets what it is given, and neither code nor snapshot is kept. Everything else
runs as always. `no snapshot` keeps the journal alone: the snapshot is a fixed cost of each experiment, whatever the
number of trials. Each run is a process of its own; a ratio is taken within a round, so that a slow minute hits all.
CPU seconds are those of the driver's process, its threads included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

VARIANTS = ("without", "no snapshot", "process", "power")
TARGET = 1.10


def train(x: float) -> float:
    return x


def train_with_reports(x: float) -> float:
    from cargobike import trial

    for step in range(20):
        trial.report(score=x * step, step=step)
    return x


def run_one(variant: str, trials: int, *, with_reports: bool) -> dict[str, float]:
    """Run the search in this process."""
    from cargobike import Searchspace, experiment, project
    from cargobike.experiments.driving.keeping import CodeKeeper
    from cargobike.store.journal.journal import JournalWriter

    if variant == "without":
        JournalWriter.append = lambda self, facts, settle=True: None  # type: ignore[method-assign,misc]
    if variant in {"without", "no snapshot"}:
        CodeKeeper.on_facts = lambda self, facts: None  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
        project.use(folder)
        wall, cpu = time.perf_counter(), time.process_time()
        result = experiment.launch(
            train_with_reports if with_reports else train,
            Searchspace(x=("DOUBLE", [0, 1])),
            num_trials=trials,
            workers=2,
            isolation="reuse",
            seed=1,
            durability="power" if variant == "power" else "process",
            quiet=True,
        )
        assert result.counts == {"completed": trials}
        return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def measure(rounds: int, trials: int, *, with_reports: bool) -> dict[str, list[dict[str, float]]]:
    samples: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    for number in range(rounds + 1):
        # Whoever comes first in a round pays for cold caches: take turns in that, too.
        for variant in VARIANTS[number % len(VARIANTS) :] + VARIANTS[: number % len(VARIANTS)]:
            command = [sys.executable, __file__, "--one", variant, "--trials", str(trials)]
            command += ["--reports"] if with_reports else []
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
            if number:  # the first round compiles and warms up
                samples[variant].append(json.loads(done.stdout.splitlines()[-1]))
    return samples


def ratio(samples: dict[str, list[dict[str, float]]], variant: str, key: str) -> float:
    pairs = zip(samples[variant], samples["without"], strict=True)
    return statistics.median(mine[key] / theirs[key] for mine, theirs in pairs)


def show(title: str, samples: dict[str, list[dict[str, float]]], trials: int) -> None:
    print(f"\n## {title}\n")
    print("| store | trials/s | driver CPU ms per trial | × wall | × driver CPU |")
    print("| --- | --- | --- | --- | --- |")
    for variant in VARIANTS:
        wall = statistics.median(one["wall_s"] for one in samples[variant])
        cpu = statistics.median(one["cpu_s"] for one in samples[variant])
        ratios = f"{ratio(samples, variant, 'wall_s'):.2f} | {ratio(samples, variant, 'cpu_s'):.2f}"
        print(f"| {variant} | {trials / wall:,.0f} | {cpu / trials * 1000:.3f} | {ratios} |")
    verdict = "met" if ratio(samples, "process", "wall_s") <= TARGET else "missed"
    print(f"\nTarget: {TARGET:.2f} × wall with the default durability: {verdict}. Load {os.getloadavg()[0]:.1f}.")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", choices=VARIANTS)
    parser.add_argument("--reports", action="store_true")
    parser.add_argument("--trials", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(run_one(given.one, given.trials, with_reports=given.reports)))
        return
    trials, rounds = (300, 1) if given.quick else (given.trials, given.rounds)
    found = {}
    for title, with_reports, count in (
        ("No-op trials", False, trials),
        ("Trials of 20 reports", True, max(100, trials // 5)),
    ):
        found[title] = measure(rounds, count, with_reports=with_reports)
        show(title, found[title], count)
    if given.json:
        given.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
