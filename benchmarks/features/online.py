"""Look up features through the whole public call: one key, 100 keys; and bring rows there. Every store, and Feast.

    python benchmarks/features/online.py [--keys 1000000] [--stores sqlite lmdb redis feast] [--rounds 3]

Each run is a process of its own, all in turn. `redis` starts a server of its own, reached by a socket; `redis-py` is
what the same look-up costs there without us, rows left packed. Feast has 50,000 keys: it brings a few thousand in a
second. Also measures planning of `get_features` in a project with 100 groups.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from turns import Figures, answer, findings, median, parser_for, percentiles, print_machine, run, timed

from cargobike import features, project

STORES = ("sqlite", "lmdb", "redis", "feast")
FEAST_KEYS = 50_000


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Run a server without persistence, and yield its address."""
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is not installed here: apt-get install redis-server")
    socket = folder / "redis.sock"
    command = [program, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not socket.exists():
            if time.monotonic() > deadline or server.poll() is not None:
                raise SystemExit("redis-server did not start")
            time.sleep(0.01)
        yield f"unix://{socket}"
    finally:
        server.kill()
        server.wait()


def measure(store: str, keys: int, folder: Path) -> Figures:
    """Measure one store in this process."""
    random = np.random.default_rng(0)
    project.use(folder / "project")
    group = features.create_group("things", key="key", event_time="at")
    times = pa.array(np.full(keys, 1_700_000_000_000_000), pa.timestamp("us", tz="UTC"))
    values = {f"f{number}": random.random(keys, dtype=np.float32) for number in range(8)}
    group.insert(pa.table({"key": random.permutation(keys), "at": times, **values}))
    _, figures = timed(lambda: group.update(online=store))
    view = features.create_view("things", features=["things.*"])
    view.vector(key=0)
    wanted = [int(key) for key in random.integers(0, keys, 20_000)]
    one = percentiles(lambda key: view.vector(key=key), wanted)
    dicts = [[{"key": int(key)} for key in random.integers(0, keys, 100)] for _ in range(1000)]
    many = percentiles(view.vectors, [[row["key"] for row in rows] for rows in dicts])
    as_dicts = percentiles(view.vectors, dicts)
    view.close()
    figures = {"rows_per_s": keys / figures["wall"], "rows_per_cpu_s": keys / figures["cpu"]}
    figures |= {"one_p50": one[0], "one_p99": one[1], "many_p50": many[0], "many_p99": many[1]}
    figures |= {"dicts_p50": as_dicts[0], "dicts_p99": as_dicts[1]}
    if "://" in store:
        figures |= measure_bare(store, keys, random)
    project.use(None)
    return figures


def measure_bare(address: str, keys: int, random: np.random.Generator) -> Figures:
    """Measure what the client library alone takes for the same rows."""
    import redis

    client: Any = redis.Redis.from_url(address)
    name = next(iter(client.scan_iter("cargobike:*")))
    fields = [int(key).to_bytes(8, "big") for key in random.integers(0, keys, 20_000)]
    assert client.hget(name, fields[0])
    one = percentiles(lambda field: client.hget(name, field), fields)
    many = percentiles(lambda some: client.hmget(name, some), [fields[at : at + 100] for at in range(0, 20_000, 100)])
    client.close()
    return {"bare_one_p50": one[0], "bare_one_p99": one[1], "bare_many_p50": many[0], "bare_many_p99": many[1]}


def measure_planning(folder: Path) -> Figures:
    """Measure how long it takes to find ten features in a hundred groups, before anything is read."""
    project.use(folder / "project")
    for number in range(100):
        schema = {"key": "int64", "at": "timestamp", **{f"g{number}_{each}": "double" for each in range(10)}}
        features.create_group(f"group{number}", key="key", event_time="at", schema=schema)
    names = [f"g{number}_0" for number in range(0, 100, 10)]
    labels = {"key": [1], "at": pa.array([0], pa.timestamp("us", tz="UTC"))}
    _, first = timed(lambda: features.get_features(names, labels=labels))
    p50, p99 = percentiles(lambda _: features.get_features(names, labels=labels), range(50))
    project.use(None)
    return {"first_ms": first["wall"] * 1000, "p50_ms": p50 / 1000, "p99_ms": p99 / 1000}


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.measure:
        with tempfile.TemporaryDirectory() as folder:
            if given.measure == "planning":
                answer(measure_planning(Path(folder)))
            elif given.measure == "redis":
                with redis_server(Path(folder)) as address:
                    answer(measure(address, given.keys, Path(folder)))
            else:
                answer(measure(given.measure, given.keys, Path(folder)))
        return
    print_machine()
    found: dict[str, list[Figures]] = {name: [] for name in given.stores}
    for number in range(given.rounds):
        for name, runs in found.items():
            if name != "feast":
                runs.append(run("online.py", "--measure", name, "--keys", str(given.keys)))
            elif number == 0:
                runs.append(run("feast_tasks.py", "online", str(min(given.keys, FEAST_KEYS)), venv="feast"))
    for name, runs in found.items():
        figures = {what: median(runs, what) for what in runs[0]}
        print(
            f"{name:7} one key p50 {figures['one_p50']:.1f} us, p99 {figures['one_p99']:.1f}; 100 keys p50 "
            f"{figures['many_p50']:.0f} us, p99 {figures['many_p99']:.0f}"
            + (
                f" (as dicts {figures['dicts_p50']:.0f} and {figures['dicts_p99']:.0f})"
                if "dicts_p50" in figures
                else ""
            )
            + f"; materialize {figures['rows_per_s']:,.0f} rows/s, {figures['rows_per_cpu_s']:,.0f} per CPU second"
        )
        if "bare_one_p50" in figures:
            print(
                f"redis-py alone: one key p50 {figures['bare_one_p50']:.1f} us, p99 {figures['bare_one_p99']:.1f}; "
                f"100 keys p50 {figures['bare_many_p50']:.0f} us, p99 {figures['bare_many_p99']:.0f}"
            )
    plan = run("online.py", "--measure", "planning")
    print("get_features over 100 groups: first {first_ms:.1f} ms, p50 {p50_ms:.1f}, p99 {p99_ms:.1f}".format(**plan))
    findings.hand_on("look-ups", judged(found, plan))


def judged(found: dict[str, list[Figures]], plan: Figures) -> list[findings.Target]:
    """Return what was wanted, and what was found with the store that is the default."""
    own = found.get("sqlite")
    targets = [findings.at_most("ten features in 100 groups are found", plan["p50_ms"], 50, " ms")]
    if own:
        targets += [
            findings.at_most("one key is looked up", median(own, "one_p50"), 15, " µs"),
            findings.at_most("100 keys are looked up", median(own, "many_p50"), 350, " µs"),
            findings.at_least("rows are brought online", median(own, "rows_per_s"), 200_000, " a second"),
        ]
    if own and found.get("feast"):
        times = median(found["feast"], "one_p50") / median(own, "one_p50")
        targets.append(findings.at_least("one key: sooner than Feast", times, 1, " ×", gate=True))
    return targets


if __name__ == "__main__":
    main()
