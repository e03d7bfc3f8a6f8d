"""Write into groups: appends of 1,000 rows, an upsert of 100,000 into a million, and the memory of a large insert.

    python benchmarks/features/groups.py [--rows 1000000] [--large 5000000] [--rounds 3]

Each run is a process of its own. Appended rows have new keys; of the upserted ones half are there already. `insert`
reads one Parquet file; its peak is the most memory that the process ever had.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from turns import Figures, answer, findings, median, parser_for, percentiles, print_machine, run, timed

from cargobike import features, project

START_US = 1_600_000_000_000_000
APPENDS = 50


def rows_of(keys: np.ndarray, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    times = pa.array(START_US + keys * 1000, pa.timestamp("us", tz="UTC"))
    values = {f"f{number}": random.random(len(keys)) for number in range(4)}
    return pa.table({"key": keys, "at": times, **values})


def filled(folder: Path, rows: int) -> features.Group:
    project.use(folder / "project")
    group = features.create_group("things", key="key", event_time="at")
    group.insert(rows_of(np.random.default_rng(0).permutation(rows), 0))
    return group


def measure_append(folder: Path, rows: int) -> Figures:
    group = filled(folder, rows)
    batches = [rows_of(np.arange(rows + at * 1000, rows + (at + 1) * 1000), at) for at in range(APPENDS)]
    p50, p99 = percentiles(group.insert, batches)
    assert group.num_rows == rows + APPENDS * 1000
    return {"p50_ms": p50 / 1000, "p99_ms": p99 / 1000}


def measure_upsert(folder: Path, rows: int) -> Figures:
    group = filled(folder, rows)
    some = rows // 10
    batch = rows_of(np.arange(rows - some // 2, rows + some - some // 2), 1)
    commit, figures = timed(lambda: group.insert(batch))
    assert (commit.updated, commit.inserted) == (some // 2, some - some // 2)
    return figures


def measure_insert(folder: Path, rows: int) -> Figures:
    path = folder / "large.parquet"
    with pq.ParquetWriter(path, rows_of(np.arange(1), 0).schema) as writer:
        for start in range(0, rows, 250_000):
            writer.write_table(rows_of(np.arange(start, min(start + 250_000, rows)), start))
    project.use(folder / "project")
    group = features.create_group("things", key="key", event_time="at")
    before = timed(lambda: None)[1]["peak_mb"]
    commit, figures = timed(lambda: group.insert(path))
    assert commit.inserted == rows
    return {**figures, "before_mb": before, "rows_per_s": rows / figures["wall"]}


TASKS = {"append": measure_append, "upsert": measure_upsert, "insert": measure_insert}


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.measure:
        with tempfile.TemporaryDirectory() as folder:
            answer(TASKS[given.measure](Path(folder), given.large if given.measure == "insert" else given.rows))
        project.use(None)
        return
    print_machine()
    sizes = ("--rows", str(given.rows), "--large", str(given.large))
    found = {name: [run("groups.py", "--measure", name, *sizes) for _ in range(given.rounds)] for name in TASKS}
    append, upsert, insert = (found[name] for name in TASKS)
    print(f"append of 1,000 rows: p50 {median(append, 'p50_ms'):.1f} ms, p99 {median(append, 'p99_ms'):.1f} ms")
    print(
        f"upsert of {given.rows // 10:,} into {given.rows:,}: {median(upsert, 'wall'):.2f} s wall, "
        f"{median(upsert, 'cpu'):.2f} s CPU"
    )
    print(
        f"insert of {given.large:,} rows from a file: {median(insert, 'rows_per_s'):,.0f} rows/s, peak "
        f"{median(insert, 'peak_mb'):,.0f} MB (before it {median(insert, 'before_mb'):,.0f} MB)"
    )
    findings.hand_on(
        "groups",
        [
            findings.at_most("an append of 1,000 rows", median(append, "p50_ms"), 40, " ms"),
            findings.at_most("an upsert of a tenth", median(upsert, "wall"), 2, " s"),
        ],
    )


if __name__ == "__main__":
    main()
