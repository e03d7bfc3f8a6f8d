"""Join labels with two groups in time: our public call beside one hand-written query of DuckDB on the same files.

    python benchmarks/features/join.py [--rows 5000000] [--labels 1000000] [--rounds 5] [--data FOLDER]

Each run is a process of its own, both in turn. A run ends with an Arrow table in memory. CPU is that of the process.
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
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from league import GROUPS, files_of, make_histories

from cargobike import features, project


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


RUNS = {"cargobike": run_ours, "bare DuckDB": run_bare}


def measure(which: str, folder: Path) -> None:
    """Run one of them in this process, and print what it took."""
    project.use(folder / "project")
    before, began = time.process_time(), time.perf_counter()
    rows = RUNS[which](folder)
    wall, cpu = time.perf_counter() - began, time.process_time() - before
    print(json.dumps({"wall": wall, "cpu": cpu, "rows": rows}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.measure, given.data)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary)
        make_histories(folder, given.rows, given.labels)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in RUNS}
        for _ in range(given.rounds):
            for name, runs in found.items():
                command = [sys.executable, __file__, "--measure", name, "--data", str(folder)]
                done = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
                runs.append(json.loads(done.stdout))
        for name, runs in found.items():
            wall, cpu = (statistics.median(run[what] for run in runs) for what in ("wall", "cpu"))
            print(f"{name:12} {wall:6.2f} s wall  {cpu:6.2f} s CPU  {int(runs[0]['rows']):,} rows")
        for what in ("wall", "cpu"):
            ratios = [a[what] / b[what] for a, b in zip(found["cargobike"], found["bare DuckDB"], strict=True)]
            pairs = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"ours / bare DuckDB, {what}: {statistics.median(ratios):.2f} (pairs {pairs})")


if __name__ == "__main__":
    main()
