"""How much of the workers' time is idle while there is work, in virtual time, on 4, 64 and 1,000 workers?

    python benchmarks/search/utilisation.py

Trials last 9 to 27 epochs of 30 s to 5 min; one worker in four is five times slower; a suggestion takes 5 ms of the
driver's time, a decision none. There is work for everybody until the last new trial starts. After that, halving has
work for fewer and fewer: the few that go on to their end take as long as they take. Both are shown, as `while there is
work / until the end`. Synchronous halving with a barrier at each rung is there to compare with.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterable

from asha_variants import Synchronous

from cargobike import Searchspace
from cargobike.core import facts
from cargobike.core.records import Params
from cargobike.experiments.scheduling.simulation import Cluster, SimulatedRun, SimulationResult, simulate
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import resolve_optimizer

SPACE = Searchspace(
    lr=("DOUBLE", [1e-5, 1e-1], "log"), width=("INTEGER", [16, 512], "log"), act=("CATEGORICAL", ["relu", "gelu"])
)
SUGGESTION_S = 0.005
TRIALS_PER_WORKER = 8
OPTIMIZERS: dict[str, Callable[[], AbstractOptimizer]] = {
    "synchronous halving": lambda: Synchronous(variant="promotion"),
    "asha, promotion": lambda: ASHA(variant="promotion"),
    "asha, stopping": lambda: ASHA(variant="stopping"),
    **{name: lambda name=name: resolve_optimizer(name) for name in ("hyperband", "bohb", "dehb")},  # type: ignore[misc]
    **{name: lambda name=name: resolve_optimizer(name) for name in ("random", "tpe", "de", "auto")},  # type: ignore[misc]
}


def train(params: Params, seed: int) -> SimulatedRun:
    rng = random.Random(seed)
    best = 1.0 - abs(params["lr"] - 0.01) - 0.1 * rng.random()
    epoch_s = rng.uniform(30.0, 300.0)
    epochs = rng.randint(9, 27)
    steps = [(epoch_s, {"accuracy": best * (1 - 0.6**epoch)}) for epoch in range(1, epochs + 1)]
    return SimulatedRun(steps=steps, value=best * (1 - 0.6**epochs))


def run(name: str, workers: int, seed: int) -> SimulationResult:
    return simulate(
        train,
        SPACE,
        optimizer=OPTIMIZERS[name](),
        num_trials=TRIALS_PER_WORKER * workers,
        workers=workers,
        seed=seed,
        cluster=Cluster(speeds=(1.0, 1.0, 1.0, 0.2), startup_s=20.0),
        suggestion_s=SUGGESTION_S,
        keep_facts=True,
    )


def idle_shares(result: SimulationResult) -> tuple[float, float]:
    """Return which share of the workers' time was idle before the last new trial started, and before the last ended."""
    here: dict[str, float] = {}
    began: dict[int, tuple[str, float]] = {}
    spans: list[tuple[float, float]] = []
    last_start = 0.0
    for fact in result.facts:
        if isinstance(fact, facts.WorkerJoined):
            here[fact.worker] = fact.at
        elif isinstance(fact, facts.AttemptStarted):
            began[fact.trial] = (fact.workers[0], fact.at)
            if fact.attempt == 1:
                last_start = fact.at
        elif isinstance(fact, facts.TrialPaused | facts.TrialEnded) and fact.trial in began:
            spans.append((began.pop(fact.trial)[1], fact.at))

    def idle(until: float) -> float:
        there = sum(max(0.0, until - joined) for joined in here.values())
        busy = sum(min(end, until) - start for start, end in spans if start < until)
        return 1 - busy / there

    return idle(last_start), idle(max(end for _, end in spans))


def main(arguments: Iterable[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 64, 1000])
    parser.add_argument("--only", choices=OPTIMIZERS, action="append", help="an optimizer; may be repeated")
    parser.add_argument("--seeds", type=int, default=3, help="how many searches for each figure; the worst is shown")
    options = parser.parse_args(list(arguments))
    print("| optimizer |", " | ".join(f"{count:,} workers" for count in options.workers), "|", flush=True)
    print("| --- |", " | ".join("---:" for _ in options.workers), "|")
    for name in options.only or OPTIMIZERS:
        cells = []
        for workers in options.workers:
            seeds = range(1 if workers >= 1000 else options.seeds)
            found = [idle_shares(run(name, workers, seed)) for seed in seeds]
            cells.append(" / ".join(f"{max(shares):.1%}" for shares in zip(*found, strict=True)))
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
