"""The same question as `asha_variants.py`, asked of real processes: two workers, one of them five times slower.

    python benchmarks/search/asha_real.py --runs 5

An epoch is a sleep of 50 ms, or of 250 ms on the slow worker; what it reports comes from the drawn curves. Medians over
the sets, least and most in brackets. The floor, in turns with the others, is promotion in two bare processes.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Literal

from asha_epochs import train
from asha_floor import run_floor
from asha_variants import AlwaysPausing, NeverPausing, Synchronous
from curve_sets import Curves, drawn_set

from cargobike import Searchspace, experiment
from cargobike.search.optimizers.asha import ASHA

FLOOR = "floor"
VARIANTS: dict[str, Callable[[], ASHA]] = {
    "synchronous halving": lambda: Synchronous(variant="promotion"),
    "stopping": lambda: ASHA(variant="stopping"),
    "promotion": lambda: ASHA(variant="promotion"),
    "promotion, whatever the worker": lambda: NeverPausing(variant="promotion"),
    "promotion, always pausing": lambda: AlwaysPausing(variant="promotion"),
}


def run(
    name: str, curves: Curves, seed: int, isolation: Literal["fresh", "reuse"]
) -> tuple[float, float, float, float]:
    if name == FLOOR:
        floor = run_floor(curves)
        return floor.total_s, floor.until_best_s, floor.epochs, 1000 * floor.regret
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CARGOBIKE_PROJECT"] = folder
        result = experiment.launch(
            functools.partial(train, curves=curves, mark=f"{folder}/slow"),
            Searchspace(number=("DISCRETE", list(range(len(curves))))),
            optimizer=VARIANTS[name](),
            num_trials=len(curves),
            workers=2,
            seed=seed,
            isolation=isolation,
            quiet=True,
        )
    assert result.best is not None
    start = min(one.started_at for one in result.trials if one.started_at is not None)
    ends = [one.ended_at for one in result.trials if one.ended_at is not None]
    best = result.best
    assert best.ended_at is not None
    assert best.value is not None
    epochs = sum(len(one.curve) for one in result.trials)
    regret = max(curve[-1] for curve in curves) - best.value
    return max(ends) - start, best.ended_at - start, epochs, 1000 * regret


def main(arguments: Iterable[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="how many sets")
    parser.add_argument("--only", choices=[*VARIANTS, FLOOR], action="append", help="a variant; may be repeated")
    parser.add_argument("--reuse", action="store_true", help="one process for all trials of a worker")
    options = parser.parse_args(list(arguments))
    isolation: Literal["fresh", "reuse"] = "reuse" if options.reuse else "fresh"
    found: dict[str, list[tuple[float, float, float, float]]] = {
        name: [] for name in options.only or [*VARIANTS, FLOOR]
    }
    for seed in range(options.runs):
        for name, rows in found.items():
            rows.append(run(name, drawn_set(seed), seed, isolation))
    print("| variant | total s | until best s | epochs | regret × 1000 |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, rows in found.items():
        columns = [*zip(*rows, strict=True)]
        cells = [f"{statistics.median(column):.1f} ({min(column):.1f} … {max(column):.1f})" for column in columns]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
