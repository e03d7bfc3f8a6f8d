"""What one suggestion costs after 100, 1,000 and 10,000 finished trials, for every optimizer.

    python benchmarks/search/overhead.py                       # about five minutes; --quick for a look
    python benchmarks/search/overhead.py --only tpe --only de --json out.json

Six parameters of all kinds, four further trials running. A suggestion is `get_suggestion` and the `observe` of the
trial before it. Median CPU milliseconds of the asking thread, so that a busy machine distorts less. Optuna's own TPE
stands beside, asked through its ask and tell; it is skipped, like everybody, where filling it takes too long.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cargobike.core.records import IDLE, Decision, Suggestion, Trial, TrialState
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import OPTIMIZERS, resolve_optimizer
from cargobike.search.spaces.space import Searchspace

SPACE = Searchspace(
    lr=("DOUBLE", [1e-4, 1e-1], "log", {"points": 40}),
    momentum=("DOUBLE", [0.5, 0.99], "reverse-log", {"points": 40}),
    layers=("INTEGER", [1, 40]),
    dropout=("DOUBLE", [0.0, 0.5], {"step": 0.05}),
    batch=("DISCRETE", [16, 32, 64, 128, 256]),
    act=("CATEGORICAL", ["relu", "gelu", "tanh", None]),
)
EPOCHS = 27
SIZES = (100, 1_000, 5_000, 10_000)
TARGETS_MS = {
    **{(name, 10_000): 1.0 for name in ("randomsearch", "gridsearch", "asha", "hyperband", "de")},
    ("tpe", 100): 1.0,
    ("tpe", 1_000): 2.0,
    ("tpe", 5_000): 5.0,
}
TIMED = 40
PATIENCE_S = 60.0
"""An optimizer that takes longer than this (of CPU) for a size is not asked about larger ones."""
NOT_A_SEARCH = {"listed", "ablation"}


class Loop:
    """Runs an optimizer on made-up learning curves, one worker, and takes the time."""

    def __init__(self, optimizer: AbstractOptimizer) -> None:
        self.optimizer = optimizer
        self.rng = random.Random(1)
        optimizer.setup(SPACE, num_trials=None, direction="min", seed=1)
        optimizer.initialize()
        self.positions: dict[int, int] = {}
        self.milestones: dict[int, Any] = {}
        self.ended = 0
        self.running = 0

    def turn(self) -> float:
        """Ask, run what is suggested until it ends or pauses, show it; return the CPU milliseconds of asking."""
        started = time.thread_time()
        answer = self.optimizer.get_suggestion()
        spent = time.thread_time() - started
        if isinstance(answer, dict):
            answer = Suggestion(params=answer)
        if answer is None or answer == IDLE:
            raise StopIteration
        assert isinstance(answer, Suggestion)
        if answer.resume is None:
            number = len(self.optimizer.trials)
            trial = Trial(answer.params, number=number, info=answer.info)
            self.optimizer.trials[number] = trial
        else:
            trial = self.optimizer.trials[answer.resume]
        self.milestones[trial.number] = answer.milestones
        spent += self._run(trial)
        return spent * 1e3

    def _run(self, trial: Trial) -> float:
        quality = self.rng.random()
        milestones = self.milestones[trial.number]
        step, spent = self.positions.get(trial.number, 0), 0.0
        state = TrialState.COMPLETED
        while step < EPOCHS and state is TrialState.COMPLETED:
            step += 1
            trial.curve.add(step, quality + 1 / step)
            if self.optimizer.wants_every_report or milestones == "every" or step in milestones:
                decision = self.optimizer.judge(trial, step, ())
                if decision is not Decision.CONTINUE:
                    state = TrialState.PAUSED if decision is Decision.PAUSE else TrialState.STOPPED
        self.positions[trial.number] = step
        trial.has_checkpoint = True
        trial.state = state
        trial.value = quality + 1 / EPOCHS if state is TrialState.COMPLETED else None
        self.ended += state.is_final
        started = time.thread_time()
        if state.is_final:
            self.optimizer.final_store.append(trial)
        self.optimizer.observe(trial)
        return spent + time.thread_time() - started

    def add_running(self, count: int) -> None:
        for _ in range(count):
            answer = self.optimizer.get_suggestion()
            if isinstance(answer, dict | Suggestion):
                params = answer if isinstance(answer, dict) else answer.params
                number = len(self.optimizer.trials)
                self.optimizer.trials[number] = Trial(params, number=number)


def measure(name: str, sizes: list[int]) -> dict[int, float | None]:
    """Return the median milliseconds of one suggestion after each number of trials."""
    loop = Loop(resolve_optimizer(name))
    found: dict[int, float | None] = {}
    for size in sizes:
        started = time.process_time()
        try:
            while len(loop.optimizer.trials) < size:
                loop.turn()
                if time.process_time() - started > PATIENCE_S:
                    return found
            found[size] = statistics.median(loop.turn() for _ in range(TIMED))
        except StopIteration:
            return found
    return found


def measure_optuna(sizes: list[int]) -> dict[int, float | None]:
    """Return the same for Optuna's TPE, whose trials are added without asking for them."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    columns: dict[str, Any] = {
        "lr": optuna.distributions.FloatDistribution(1e-4, 1e-1, log=True),
        "momentum": optuna.distributions.FloatDistribution(0.5, 0.99),
        "layers": optuna.distributions.IntDistribution(1, 40),
        "dropout": optuna.distributions.FloatDistribution(0.0, 0.5, step=0.05),
        "batch": optuna.distributions.IntDistribution(0, 4),
        "act": optuna.distributions.CategoricalDistribution(["relu", "gelu", "tanh", None]),
    }
    rng = random.Random(1)
    found: dict[int, float | None] = {}
    draws = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for size in sizes:
        while len(study.get_trials(deepcopy=False)) < size:
            params = draws.ask(columns).params
            study.add_trial(optuna.create_trial(params=params, distributions=columns, value=rng.random()))
        times = []
        for _ in range(TIMED):
            started = time.thread_time()
            trial = study.ask(columns)
            study.tell(trial, rng.random())
            times.append((time.thread_time() - started) * 1e3)
        found[size] = statistics.median(times)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", help="an optimizer's name, or optuna-tpe; may be repeated")
    parser.add_argument("--quick", action="store_true", help="up to 1,000 trials")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    sizes = [size for size in SIZES if size <= 1_000 or not arguments.quick]
    systems: dict[str, Callable[[], dict[int, float | None]]] = {
        name: lambda name=name: measure(name, sizes)  # type: ignore[misc]
        for name in OPTIMIZERS.names()
        if name not in NOT_A_SEARCH
    }
    systems["optuna-tpe"] = lambda: measure_optuna(sizes)
    results: dict[str, dict[int, float | None]] = {}
    print("| optimizer | " + " | ".join(f"{size:,} trials" for size in sizes) + " |")
    print("| --- |" + " ---: |" * len(sizes), flush=True)
    for name, run in systems.items():
        if arguments.only and name not in arguments.only:
            continue
        try:
            results[name] = run()
        except ImportError as error:
            print(f"| {name} | not measured: {error} |")
            continue
        print(
            f"| {name} | " + " | ".join(_cell(name, size, results[name].get(size)) for size in sizes) + " |", flush=True
        )
    if arguments.json:
        arguments.json.write_text(json.dumps({"unit": "ms", "results": results}, indent=2))
    missed = [key for key, limit in TARGETS_MS.items() if (results.get(key[0], {}).get(key[1]) or 0.0) > limit]
    print(f"\nTargets missed: {', '.join(f'{name} at {size:,}' for name, size in missed) or 'none'}.")
    return 1 if missed else 0


def _cell(name: str, size: int, value: float | None) -> str:
    if value is None:
        return "–"
    limit = TARGETS_MS.get((name, size), math.inf)
    return f"{value:.3f}" + (f" (target {limit:g})" if math.isfinite(limit) else "")


if __name__ == "__main__":
    sys.exit(main())
