"""Look up features through the whole public call: one key, 100 keys; and bring rows there.

    python benchmarks/features/online.py [--keys 1000000]

Also measures planning of `get_features` in a project with 100 groups.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cargobike import features, project


def percentiles(call: Callable[[Any], object], arguments: Sequence[Any]) -> tuple[float, float]:
    """Return p50 and p99 of a call, in microseconds."""
    taken = []
    for argument in arguments:
        began = time.perf_counter_ns()
        call(argument)
        taken.append((time.perf_counter_ns() - began) / 1000)
    taken.sort()
    return taken[len(taken) // 2], taken[int(len(taken) * 0.99)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        project.use(Path(folder) / "project")
        group = features.create_group("things", key="key", event_time="at")
        times = pa.array(np.full(given.keys, 1_700_000_000_000_000), pa.timestamp("us", tz="UTC"))
        values = {f"f{number}": random.random(given.keys, dtype=np.float32) for number in range(8)}
        group.insert(pa.table({"key": random.permutation(given.keys), "at": times, **values}))
        began, before = time.perf_counter(), time.process_time()
        group.materialize()
        wall, cpu = time.perf_counter() - began, time.process_time() - before
        print(f"materialize: {given.keys / wall:,.0f} rows/s wall, {given.keys / cpu:,.0f} rows per CPU second")
        view = features.create_view("things", features=["things.*"])
        keys = [int(key) for key in random.integers(0, given.keys, 20_000)]
        one = percentiles(lambda key: view.vector(key=key), keys)
        print("vector(key=…): p50 {:.1f} us, p99 {:.1f} us".format(*one))
        many = [[{"key": int(key)} for key in random.integers(0, given.keys, 100)] for _ in range(1000)]
        print("vectors([100 dicts]): p50 {:.1f} us, p99 {:.1f} us".format(*percentiles(view.vectors, many)))
        plain = [[row["key"] for row in rows] for rows in many]
        print("vectors([100 keys]): p50 {:.1f} us, p99 {:.1f} us".format(*percentiles(view.vectors, plain)))
        view.close()
        for number in range(100):
            schema = {"key": "int64", "at": "timestamp", **{f"g{number}_{each}": "double" for each in range(10)}}
            features.create_group(f"group{number}", key="key", event_time="at", schema=schema)
        names = [f"g{number}_0" for number in range(0, 100, 10)]
        labels = {"key": [1], "at": pa.array([0], pa.timestamp("us", tz="UTC"))}
        features.get_features(names, labels=labels)
        p50, p99 = percentiles(lambda _: features.get_features(names, labels=labels), range(50))
        print(f"get_features over 100 groups: p50 {p50 / 1000:.1f} ms, p99 {p99 / 1000:.1f} ms")
        project.use(None)


if __name__ == "__main__":
    main()
