"""The groups that are measured: random histories of many keys, made once and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cargobike import features, project

KEYS = 100_000
GROUPS = ("first", "second")
START_US = 1_600_000_000_000_000
SPAN_US = 1_000_000_000_000
_TIME = pa.timestamp("us", tz="UTC")


def make_histories(folder: Path, rows: int, labels: int) -> None:
    """Make two groups with four features each, and labels, unless they are there."""
    project.use(folder / "project")
    random = np.random.default_rng(0)
    for name in GROUPS:
        group = features.create_group(name, key="key", event_time="at")
        if group.commit >= 0:
            continue
        # Each key and time once: all rows would else be compared with each other.
        times = START_US + np.arange(rows, dtype=np.int64) * (SPAN_US // rows)
        columns = {"key": random.integers(0, KEYS, rows), "at": pa.array(random.permutation(times), _TIME)}
        values = {f"{name}_{number}": random.random(rows, dtype=np.float32) for number in range(4)}
        table = pa.table({**columns, **values})
        group.insert(table)
        pq.write_table(table, folder / f"{name}.parquet")  # for peers, which bring no storage of their own
    path = folder / "labels.parquet"
    if not path.exists():
        times = random.integers(START_US, START_US + SPAN_US, labels)
        table = {"key": random.integers(0, KEYS, labels), "at": pa.array(times, _TIME), "value": random.random(labels)}
        pq.write_table(pa.table(table), path)


def files_of(name: str) -> list[str]:
    """Return the Parquet files of a group."""
    return list(features.group(name).dataset().files)
