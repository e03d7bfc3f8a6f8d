"""Which kind of successive halving is best where workers are unequal: in virtual time, over many sets of curves.

    python benchmarks/search/asha_variants.py                  # half an hour on one core; --quick for a look
    python benchmarks/search/asha_variants.py --json out.json

Sets of 60 configurations (more for 16 workers), 27 epochs of 50 ms. For each variant: seconds in all, seconds until the
winner was fully trained, epochs trained, and the winner's regret (how much worse than the best of its set it is). Means
over the sets; the ± is the standard error of the difference to `promotion` on the same sets.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from curve_sets import CONFIGURATIONS, Curves, drawn_set, trained_sets

from cargobike.core.records import IDLE, Decision, Params, Trial
from cargobike.engines.simulated.engine import SimulatedEngine
from cargobike.experiments.scheduling import simulation
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.experiments.scheduling.simulation import Cluster, SimulatedRun, simulate
from cargobike.search.models.rungs import Rung
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.optimizers.randomsearch import RandomSearch

EPOCH_S = 0.05


class Setting(NamedTuple):
    """Where the sets are searched; `start_epochs` is what starting or resuming a trial costs, in epochs."""

    title: str
    workers: int
    speeds: tuple[float, ...]
    start_epochs: float = 0.0


SETTINGS = [
    Setting("2 workers, one 5 times slower", 2, (1.0, 0.2)),
    Setting("2 workers, one 5 times slower, a start costs half an epoch", 2, (1.0, 0.2), 0.5),
    Setting("2 workers, one 5 times slower, a start costs 2 epochs", 2, (1.0, 0.2), 2.0),
    Setting("2 equal workers", 2, (1.0,)),
    Setting("16 workers, two 5 times slower", 16, (1.0,) * 14 + (0.2, 0.2)),
]


# -- variants that were not kept ---------------------------------------------------------------------------------------


class Synchronous(ASHA):
    """Successive halving with a barrier: a rung is decided about when everybody is there."""

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        assert self.num_trials is not None
        expected = self.num_trials
        for rung, ladder in reversed(self._from_the_top):
            places = expected // 3
            if len(rung) == expected and len(rung._gone_on) < places:
                number = rung.best_waiting()
                if number is not None and len(rung._waiting) + len(rung._gone_on) >= expected:
                    return self._resume(number, rung, ladder)
            expected = places
        params = self.sampler.suggest() if self._may_start else None
        if params is not None:
            return self._start(params)
        return IDLE if self._active else None

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        return _paused(self, trial, step, trials)


class AlwaysPausing(ASHA):
    """Promotion as it is usually told: whoever gets to a rung pauses, and may be resumed at once."""

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        return _paused(self, trial, step, trials)


class NeverPausing(ASHA):
    """Promotion in which whoever may go on does so where it is, however slow its worker."""

    def initialize(self) -> None:
        super().initialize()
        self._pace.keeps_up = lambda worker: True  # type: ignore[method-assign]


class Capped(ASHA):
    """Promotion in which never more than a third of those at a rung have gone on, early mistakes included."""

    def initialize(self) -> None:
        super().initialize()
        for rung, _ in self._from_the_top:
            _limit(rung, lambda rung: len(rung._gone_on) < len(rung) // 3)


class Delayed(ASHA):
    """Promotion that waits until a rung has some more members than it takes to choose one."""

    def __init__(self, wait_for: int) -> None:
        super().__init__(variant="promotion")
        self.wait_for = wait_for

    def initialize(self) -> None:
        super().initialize()
        for rung, _ in self._from_the_top:
            _limit(rung, lambda rung: len(rung) >= self.wait_for or not self._may_start)


class NewFirst(ASHA):
    """Promotion that starts all new trials first, then promotes from the lowest rung on: no barrier."""

    def __init__(self, extra: int = 0) -> None:
        super().__init__(variant="promotion")
        self.extra = extra

    def initialize(self) -> None:
        super().initialize()
        self._from_the_top.reverse()
        for rung, _ in self._from_the_top:
            _limit(rung, lambda rung: not self._may_start, self.extra)


def _limit(rung: Rung, allows: Callable[[Rung], bool], extra: int = 0) -> None:
    def is_promotable(trial: int) -> bool:
        return allows(rung) and rung._is_among(trial, len(rung) // 3 + extra)

    rung.is_promotable = is_promotable  # type: ignore[method-assign]


def _paused(optimizer: ASHA, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
    before = {id(rung): set(rung._gone_on) for rung, _ in optimizer._from_the_top}
    decision = ASHA.judge(optimizer, trial, step, trials)
    reached = [rung for rung, _ in optimizer._from_the_top if trial.number in rung]
    if decision is Decision.CONTINUE and reached and trial.number not in before[id(reached[0])]:
        reached[0]._gone_on.discard(trial.number)
        return Decision.PAUSE
    return decision


class BySpeed(ASHA):
    """Promotion that knows who is slow: a slow worker gets short jobs, and keeps no trial that is promoted."""

    slow: frozenset[str] = frozenset()
    asking: str | None = None

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        if trial.worker in self.slow:
            return _paused(self, trial, step, trials)
        return super().judge(trial, step, trials)

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        if self.asking not in self.slow:
            return super().get_suggestion(trial)
        params = self.sampler.suggest() if self._may_start else None
        if params is not None:
            return self._start(params)
        self._from_the_top.reverse()
        found = super().get_suggestion(trial)
        self._from_the_top.reverse()
        return found


class TellingWhoAsks(Scheduler):
    """Tells a `BySpeed` which worker the next suggestion is for."""

    optimizer: BySpeed

    def _ask(self) -> None:
        self.optimizer.asking = next(iter(self._roster._idle), None)
        super()._ask()


class CostlyStart(SimulatedEngine):
    """Workers that take a while to start or resume a trial."""

    start_s = 0.0

    def _go_on(self, run: Any) -> None:
        begun: set[tuple[int, int]] = self.__dict__.setdefault("begun", set())
        if (run.trial, run.attempt) in begun:
            super()._go_on(run)
            return
        begun.add((run.trial, run.attempt))
        left = run.model.steps[run.done :]
        run.due = self._put(self.now + (self.start_s + (left[0][0] if left else 0.0)) / run.speed, run)


# -- measuring ---------------------------------------------------------------------------------------------------------


VARIANTS: dict[str, Callable[[], AbstractOptimizer]] = {
    "no stopping": RandomSearch,
    "synchronous halving": lambda: Synchronous(variant="promotion"),
    "stopping": lambda: ASHA(variant="stopping"),
    "promotion": lambda: ASHA(variant="promotion"),
    "promotion, whatever the worker": lambda: NeverPausing(variant="promotion"),
    "promotion, always pausing": lambda: AlwaysPausing(variant="promotion"),
    "promotion, capped": lambda: Capped(variant="promotion"),
    "promotion, delayed to 6": lambda: Delayed(6),
    "promotion, delayed to 12": lambda: Delayed(12),
    "promotion, new trials first": NewFirst,
    "the same, one more from each rung": lambda: NewFirst(extra=1),
    "promotion, placed by known speed": lambda: BySpeed(variant="promotion"),
}


class Outcome(NamedTuple):
    total_s: float
    to_best_s: float
    epochs: int
    regret: float


def run(make: Callable[[], AbstractOptimizer], curves: Curves, setting: Setting, seed: int) -> Outcome:
    def train(params: Params, seed: int) -> SimulatedRun:
        curve = curves[params["number"]]
        return SimulatedRun(steps=[(EPOCH_S, {"accuracy": value}) for value in curve], value=curve[-1])

    optimizer = make()
    engine = type("Engine", (CostlyStart,), {"start_s": setting.start_epochs * EPOCH_S})
    kind: type[Scheduler] = Scheduler
    if isinstance(optimizer, BySpeed):
        speeds = [setting.speeds[number % len(setting.speeds)] for number in range(setting.workers)]
        optimizer.slow = frozenset(f"w{number}" for number, speed in enumerate(speeds) if speed < 1)
        kind = type("Telling", (TellingWhoAsks,), {"optimizer": optimizer})
    with mock.patch.object(simulation, "Scheduler", kind), mock.patch.object(simulation, "SimulatedEngine", engine):
        result = simulate(
            train,
            {"number": ("DISCRETE", list(range(len(curves))))},
            optimizer=optimizer,
            num_trials=len(curves),
            workers=setting.workers,
            cluster=Cluster(speeds=setting.speeds),
            seed=seed,
            ask_ahead=0 if isinstance(optimizer, BySpeed) else 1,
        )
    best = result.best
    assert best is not None, result.record.reason
    assert best.value is not None
    assert best.ended_at is not None
    regret = max(curve[-1] for curve in curves) - best.value
    return Outcome(result.makespan_s, best.ended_at, result.usage.steps, regret)


def table(title: str, sets: Sequence[Curves], setting: Setting, variants: Iterable[str]) -> list[dict[str, object]]:
    found = {
        name: [run(VARIANTS[name], curves, setting, seed) for seed, curves in enumerate(sets)]
        for name in VARIANTS
        if name in {*variants, "promotion"}
    }
    reference = found["promotion"]
    print(f"\n### {title}, {len(sets)} sets\n")
    print("| variant | total s | until best s | epochs | regret × 1000 |")
    print("| --- | ---: | ---: | ---: | ---: |")
    rows: list[dict[str, object]] = []
    for name, outcomes in found.items():
        cells = []
        row: dict[str, object] = {"where": title, "variant": name}
        for field, factor in (("total_s", 1), ("to_best_s", 1), ("epochs", 1), ("regret", 1000)):
            own = [factor * getattr(outcome, field) for outcome in outcomes]
            differences = [value - factor * getattr(other, field) for value, other in zip(own, reference, strict=True)]
            error = statistics.stdev(differences) / math.sqrt(len(differences))
            mean = statistics.mean(own)
            cells.append(f"{mean:.{0 if field == 'epochs' else 2}f}" + (f" ± {error:.2f}" if error else ""))
            row |= {field: mean, f"{field}_error": error}
        rows.append(row)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return rows


def main(arguments: Iterable[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few sets")
    parser.add_argument("--only", choices=VARIANTS, action="append", help="a variant; may be repeated")
    parser.add_argument("--setting", choices=[one.title for one in SETTINGS], action="append", help="may be repeated")
    parser.add_argument("--source", choices=("drawn", "trained"), action="append", help="which curves; both by default")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--cache", type=Path, default=Path(".curves"), help="where trained curves are kept")
    options = parser.parse_args(list(arguments))
    few, many = (6, 9) if options.quick else (30, 120)
    rows = []
    for source in options.source or ("drawn", "trained"):
        for setting in SETTINGS:
            if options.setting and setting.title not in options.setting:
                continue
            # As much work for each worker, as far as there are curves.
            size = CONFIGURATIONS if setting.workers == 2 else 480
            count = many if setting.workers == 2 else few
            sets = (
                [drawn_set(seed, size) for seed in range(count)]
                if source == "drawn"
                else trained_sets(count, options.cache, size)
            )
            rows += table(f"{source} curves, {setting.title}", sets, setting, options.only or VARIANTS)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
