"""How many events a second go into the journal and into the index, alone and while a search runs.

    python benchmarks/store/store_events.py                   # about two minutes; --quick for a look
    python benchmarks/store/store_events.py --json out.json

Three questions:

1. Written to a journal, in batches as a driver has them, with both durabilities.
2. Read from a journal into an empty index: SQLite, and PostgreSQL on a server of its own (skipped where there is none).
3. A search of trials that report, while another process keeps the index up to date as a dashboard does: how much
   slower is the search, and how far behind is the index when it ends? The search that nobody looks at stands beside.

Servers run with fsync off, as tests do; the index is derived, and a team that wants to may do the same.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from cargobike.core.facts import AttemptStarted, Fact, Reported, TrialEnded, TrialSuggested
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.opening import open_index
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact
from support import programs
from support.postgres_server import PostgresServer

POINTS = 20
URL = "CARGOBIKE_INDEX_URL"


def facts_of(trials: int) -> Iterator[Fact]:
    """Yield the facts of a search."""
    yield first_fact(at=1.0, id="20270101-000000-aaaa", name="benchmark", metric="score")
    for number in range(trials):
        yield TrialSuggested(at=2.0, trial=number, params={"lr": 0.1 * number, "layers": number % 7}, seed=number)
        yield AttemptStarted(at=2.0, trial=number, attempt=1, workers=("w0",))
        for step in range(POINTS):
            yield Reported(at=3.0, trial=number, step=step, metrics={"score": step / 7, "loss": 1 / (step + 1)})
        yield TrialEnded(at=4.0, trial=number, state="completed", value=0.5, metrics={"score": 0.5})


def journal_rate(folder: Path, batch: int, durability: Any, events: int) -> float:
    facts = list(facts_of(events // (POINTS + 3)))
    with JournalWriter(folder / f"{durability}-{batch}-{time.monotonic_ns()}.jsonl", durability=durability) as journal:
        started = time.perf_counter()
        for start in range(0, len(facts), batch):
            journal.append(facts[start : start + batch])
        return len(facts) / (time.perf_counter() - started)


def index_rate(folder: Path, trials: int) -> float:
    project = ProjectFolder(folder)
    place = project.experiment("20270101-000000-aaaa")
    place.root.mkdir(parents=True)
    facts = list(facts_of(trials))
    with JournalWriter(place.journal) as journal:
        journal.append(facts)
    with open_index(project) as index:
        started = time.perf_counter()
        index.sync()
        spent = time.perf_counter() - started
        assert index.experiment(place.id).trials == trials
    return len(facts) / spent


def reporting(x: float) -> float:
    from cargobike import trial

    for step in range(POINTS):
        trial.report(score=x * step, loss=1 / (step + 1), step=step)
    return x


def search(folder: Path, trials: int) -> float:
    """Run a search in this process; returns events a second."""
    from cargobike import Searchspace, experiment, project

    project.use(folder)
    space = Searchspace(x=("DOUBLE", [0, 1]))
    started = time.perf_counter()
    result = experiment.launch(reporting, space, num_trials=trials, workers=2, isolation="reuse", seed=1, quiet=True)
    assert result.counts == {"completed": trials}
    return trials * (POINTS + 3) / (time.perf_counter() - started)


def follow(folder: Path) -> None:
    """Keep the index up to date, four times a second, until the search is over; says what the last sync took."""
    project = ProjectFolder(folder)
    with open_index(project) as index:
        while True:
            started = time.perf_counter()
            index.sync()
            rows = index.experiments()
            if rows and rows[0].ended_at is not None:
                print(json.dumps({"lag_s": time.time() - rows[0].ended_at, "sync_s": time.perf_counter() - started}))
                return
            time.sleep(0.25)


def watched_search(trials: int, url: str | None) -> dict[str, float]:
    """Run a search with a process beside it that follows; without one if `url` is `None`."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
        Path(folder, "experiments").mkdir()
        environment = {**os.environ, URL: url or ""}
        follower = None
        if url is not None:
            command = [sys.executable, __file__, "--follow", folder]
            follower = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        done = subprocess.run(
            [sys.executable, __file__, "--search", folder, "--trials", str(trials)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=600,
            check=True,
        )
        found: dict[str, float] = {"events_per_s": float(done.stdout.splitlines()[-1])}
        if follower is not None:
            found |= json.loads(follower.communicate(timeout=120)[0])
        return found


@contextmanager
def postgres() -> Iterator[str | None]:
    program = programs.find("postgres")
    if program is None:
        yield None
        return
    server = PostgresServer(Path(program).parent)
    try:
        yield server.url
    finally:
        server.close()


def rounds_of(count: int, turns: dict[str, Callable[[], Any]]) -> dict[str, list[Any]]:
    """Let everybody have a turn in each round."""
    samples: dict[str, list[Any]] = {name: [] for name in turns}
    for number in range(count):
        names = list(turns)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            samples[name].append(turns[name]())
    return samples


def in_fresh_folder(action: Callable[[Path], float], url: str = "") -> Callable[[], float]:
    def turn() -> float:
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
            os.environ[URL] = url
            return action(Path(folder))

    return turn


def show(title: str, samples: dict[str, list[float]]) -> None:
    print(f"\n## {title}\n\n| | events/s | range |\n| --- | --- | --- |")
    for name, values in samples.items():
        print(f"| {name} | {statistics.median(values):,.0f} | {min(values):,.0f} … {max(values):,.0f} |")
    print(f"\nLoad {os.getloadavg()[0]:.1f}.")


def show_watched(samples: dict[str, list[dict[str, float]]]) -> None:
    print("\n## A search of trials that report, and who looks at it\n")
    print("| who looks | events/s | × nobody | index behind at the end (s) |\n| --- | --- | --- | --- |")
    for name, values in samples.items():
        rate = statistics.median(one["events_per_s"] for one in values)
        pairs = zip(values, samples["nobody"], strict=True)
        part = statistics.median(mine["events_per_s"] / theirs["events_per_s"] for mine, theirs in pairs)
        lag = statistics.median(one["lag_s"] for one in values) if "lag_s" in values[0] else None
        print(f"| {name} | {rate:,.0f} | {part:.2f} | {'–' if lag is None else f'{lag:.2f}'} |")
    print(f"\nLoad {os.getloadavg()[0]:.1f}.")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", type=Path)
    parser.add_argument("--follow", type=Path)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    if given.search:
        print(search(given.search, given.trials))
        return
    if given.follow:
        follow(given.follow)
        return
    events, trials, rounds = (5_000, 100, 1) if given.quick else (100_000, given.trials, given.rounds)
    turns = {
        f"{durability}, batches of {batch}": in_fresh_folder(
            functools.partial(
                journal_rate,
                batch=batch,
                durability=durability,
                events=events if durability == "process" else events // 20,
            )
        )
        for durability in ("process", "power")
        for batch in (1, 10, 100)
    }
    found: dict[str, Any] = {"journal": rounds_of(rounds, turns)}
    show("Into the journal", found["journal"])
    with postgres() as url:
        databases = {"SQLite": ""} | ({"PostgreSQL": url} if url else {})
        turns = {
            name: in_fresh_folder(lambda folder: index_rate(folder, events // (POINTS + 3)), place)
            for name, place in databases.items()
        }
        found["index"] = rounds_of(rounds, turns)
        show("From a journal into an empty index", found["index"])
        watched: dict[str, Callable[[], Any]] = {"nobody": lambda: watched_search(trials, None)}
        for name, place in databases.items():
            watched[name] = functools.partial(watched_search, trials, place)
        found["watched"] = rounds_of(rounds, watched)
        show_watched(found["watched"])
    if given.json:
        given.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
