"""Join labels with two groups in time: our public call beside one hand-written query of DuckDB, and Feast.

    python benchmarks/features/join.py [--rows 5000000] [--labels 1000000] [--rounds 5] [--feast-rounds 1]

Each run is a process of its own, all in turn. A run ends with an Arrow table in memory. CPU is that of the process and
of those that it started. Feast takes minutes, and has fewer rounds; 0 leaves it out.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from league import GROUPS, files_of, make_histories
from turns import Figures, answer, findings, median, parser_for, print_machine, run, timed

from cargobike import features, project

OURS, BARE = "cargobike", "bare DuckDB"
FEAST = {"Feast, duckdb": "duckdb", "Feast, dask": "dask"}


def run_ours(folder: Path) -> int:
    labels = pq.read_table(folder / "labels.parquet")
    return len(features.get_features([f"{name}.*" for name in GROUPS], labels=labels).to_arrow())


def run_bare(folder: Path) -> int:
    first, second = ([str(path) for path in files_of(name)] for name in GROUPS)
    text = (
        f'SELECT l.*, a.* EXCLUDE (key, "at", _written_at), b.* EXCLUDE (key, "at", _written_at) '
        f"FROM read_parquet('{folder / 'labels.parquet'}') l "
        f'ASOF LEFT JOIN read_parquet({first}) a ON l.key = a.key AND l."at" >= a."at" '
        f'ASOF LEFT JOIN read_parquet({second}) b ON l.key = b.key AND l."at" >= b."at"'
    )
    with duckdb.connect(":memory:") as connection:
        return int(connection.sql(text).to_arrow_table().num_rows)


RUNS = {OURS: run_ours, BARE: run_bare}


def measure(which: str, folder: Path) -> None:
    """Run one of them in this process, and print what it took."""
    project.use(folder / "project")
    rows, figures = timed(lambda: RUNS[which](folder))
    answer({**figures, "rows": rows})


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--feast-rounds", type=int, default=1)
    parser.add_argument("--data", type=Path, help="where the histories are made, and kept; by default they are not")
    given = parser.parse_args()
    if given.measure:
        measure(given.measure, given.data)
        return
    print_machine()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary)
        make_histories(folder, given.rows, given.labels)
        found: dict[str, list[Figures]] = {name: [] for name in (*RUNS, *FEAST)}
        for number in range(max(given.rounds, given.feast_rounds)):
            for name in RUNS if number < given.rounds else ():
                found[name].append(run("join.py", "--measure", name, "--data", str(folder)))
            for name, store in FEAST.items() if number < given.feast_rounds else ():
                found[name].append(run("feast_tasks.py", "join", store, str(folder), venv="feast"))
        found = {name: runs for name, runs in found.items() if runs}
        print_all(found, given.labels)
        findings.hand_on("joins", list(judged(found)))


def judged(found: dict[str, list[Figures]]) -> Iterator[findings.Target]:
    """Yield what was wanted, and what was found."""
    ratios = [ours["cpu"] / bare["cpu"] for ours, bare in zip(found[OURS], found[BARE], strict=True)]
    text = "CPU of a join in time: at most 1.2 × a hand-written query"
    yield findings.at_most(text, statistics.median(ratios), 1.2, " ×", gate=True)
    for peer in FEAST:
        if peer in found:
            ratio = median(found[peer], "cpu") / median(found[OURS], "cpu")
            yield findings.at_least(f"CPU: at least 15 × less than {peer}", ratio, 15, " ×", gate=True)


def print_all(found: dict[str, list[Figures]], labels: int) -> None:
    for name, runs in found.items():
        wall, cpu, peak = (median(runs, what) for what in ("wall", "cpu", "peak_mb"))
        rows = int(runs[0]["rows"])
        lost = f", {labels - rows:,} labels lost" if rows != labels else ""
        print(f"{name:14} {wall:7.2f} s wall {cpu:7.2f} s CPU {peak:7,.0f} MB peak {rows:,} rows{lost}")
    for other in (name for name in found if name != OURS):
        for what in ("wall", "cpu"):
            if other == BARE:
                ratios = [a[what] / b[what] for a, b in zip(found[OURS], found[other], strict=True)]
                pairs = ", ".join(f"{ratio:.2f}" for ratio in ratios)
                print(f"ours / {other}, {what}: {statistics.median(ratios):.2f} (pairs {pairs})")
            else:
                print(f"{other} / ours, {what}: {median(found[other], what) / median(found[OURS], what):.1f}")


if __name__ == "__main__":
    main()
