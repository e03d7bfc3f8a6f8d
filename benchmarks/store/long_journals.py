"""Make projects with one long journal: many trials, or many points; as a driver would have left them.

python benchmarks/store/long_journals.py FOLDER --trials 100000              # no reports
python benchmarks/store/long_journals.py FOLDER --trials 10000 --points 100  # a million points
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from pathlib import Path

from cargobike.core.asked import Asked
from cargobike.core.layout import ProjectFolder
from cargobike.journals import (
    AttemptStarted,
    ExperimentEnded,
    ExperimentStarted,
    Fact,
    JournalWriter,
    Reported,
    TrialEnded,
    TrialSuggested,
    WorkerJoined,
)

EXPERIMENT = "20261115-120000-a1b2"
_STARTED_AT = 1_763_208_000.0
_FACTS_AT_ONCE = 1000


def facts(trials: int, points: int, workers: int, begin: int = 0) -> Iterator[Fact]:
    """Yield the facts of a search whose trials run side by side, each report a moment after the one before.

    The first trial has the number `begin`.
    """
    rng = random.Random(1)
    at = _STARTED_AT
    yield ExperimentStarted(at=at, id=EXPERIMENT, asked=Asked(name="long", function="train.py:train"))
    for worker in range(workers):
        yield WorkerJoined(at=at, worker=f"w{worker}", host="here", pid=1000 + worker)
    for first in range(begin, begin + trials, workers):
        running = range(first, min(first + workers, begin + trials))
        rates = {number: 10 ** rng.uniform(-4, -1) for number in running}
        for number in running:
            at += 1e-4
            yield TrialSuggested(
                at=at,
                trial=number,
                params={"lr": rates[number], "layers": rng.randint(1, 5), "act": rng.choice(["relu", "gelu"])},
                seed=rng.getrandbits(32),
            )
            yield AttemptStarted(at=at, trial=number, attempt=1, workers=(f"w{number - first}",))
        for step in range(points):
            for number in running:
                at += 1e-4
                loss = math.exp(-step * rates[number])
                yield Reported(
                    at=at, trial=number, step=step, metrics={"accuracy": 1 - loss, "loss": loss}, number=step + 1
                )
        for number in running:
            at += 1e-4
            is_failed = number % 50 == 7
            yield TrialEnded(
                at=at,
                trial=number,
                state="failed" if is_failed else "completed",
                value=None if is_failed else 1 - rates[number],
                error="ValueError: it did not converge" if is_failed else None,
                peak_memory_bytes=20_000_000,
            )
    yield ExperimentEnded(at=at, state="completed")


def make_project(folder: Path, trials: int, points: int = 0, workers: int = 2) -> Path:
    """Write the journal of a search into a new project; returns the journal."""
    journal = ProjectFolder(folder).experiment(EXPERIMENT).journal
    with JournalWriter(journal) as writer:
        batch = list[Fact]()
        for fact in facts(trials, points, workers):
            batch.append(fact)
            if len(batch) == _FACTS_AT_ONCE:
                writer.append(batch)
                batch = []
        writer.append(batch)
    return journal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=0, help="of each trial")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    journal = make_project(given.folder, given.trials, given.points, given.workers)
    print(f"{journal}: {journal.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
