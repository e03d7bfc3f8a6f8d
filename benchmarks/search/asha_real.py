"""The same question as `asha_variants.py`, asked of real processes: two workers, one of them five times slower.

    python benchmarks/search/asha_real.py --runs 5

An epoch is a sleep of 50 ms, or of 250 ms on the slow worker; what it reports comes from the drawn curves. Medians over
the sets, least and most in brackets.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from asha_variants import AlwaysPausing, NeverPausing, Synchronous
from curve_sets import Curves, drawn_set

from cargobike import Searchspace, experiment, trial
from cargobike.search.asha import ASHA

EPOCH_S = 0.05
VARIANTS: dict[str, Callable[[], ASHA]] = {
    "synchronous halving": lambda: Synchronous(variant="promotion"),
    "stopping": lambda: ASHA(variant="stopping"),
    "promotion": lambda: ASHA(variant="promotion"),
    "promotion, whatever the worker": lambda: NeverPausing(variant="promotion"),
    "promotion, always pausing": lambda: AlwaysPausing(variant="promotion"),
}


def train(number: int, curves: Curves, mark: str) -> float:
    """Follow a curve; the first worker that comes marks itself as the slow one."""
    me = str(os.getppid())
    with contextlib.suppress(FileExistsError), Path(mark).open("x") as file:
        file.write(me)
    epoch_s = EPOCH_S * (5 if Path(mark).read_text() == me else 1)
    for epoch in range(trial.checkpoint.load(0), len(curves[number])):
        time.sleep(epoch_s)
        trial.checkpoint.save(epoch + 1)
        trial.report(accuracy=curves[number][epoch], step=epoch)
    return curves[number][-1]


def run(
    make: Callable[[], ASHA], curves: Curves, seed: int, isolation: Literal["fresh", "reuse"]
) -> tuple[float, float, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CARGOBIKE_PROJECT"] = folder
        result = experiment.launch(
            functools.partial(train, curves=curves, mark=f"{folder}/slow"),
            Searchspace(number=("DISCRETE", list(range(len(curves))))),
            optimizer=make(),
            num_trials=len(curves),
            workers=2,
            seed=seed,
            isolation=isolation,
            quiet=True,
        )
    assert result.best is not None
    start = min(one.started_at for one in result.trials if one.started_at is not None)
    ends = [one.ended_at for one in result.trials if one.ended_at is not None]
    best = result.trials[result.best.number]
    assert best.ended_at is not None
    epochs = sum(len(one.curve) for one in result.trials)
    regret = max(curve[-1] for curve in curves) - result.best.metric
    return max(ends) - start, best.ended_at - start, epochs, 1000 * regret


def main(arguments: Iterable[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="how many sets")
    parser.add_argument("--only", choices=VARIANTS, action="append", help="a variant; may be repeated")
    parser.add_argument("--reuse", action="store_true", help="one process for all trials of a worker")
    options = parser.parse_args(list(arguments))
    isolation: Literal["fresh", "reuse"] = "reuse" if options.reuse else "fresh"
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in options.only or VARIANTS}
    for seed in range(options.runs):
        for name, rows in found.items():
            rows.append(run(VARIANTS[name], drawn_set(seed), seed, isolation))
    print("| variant | total s | until best s | epochs | regret × 1000 |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, rows in found.items():
        columns = [*zip(*rows, strict=True)]
        cells = [f"{statistics.median(column):.1f} ({min(column):.1f} … {max(column):.1f})" for column in columns]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
