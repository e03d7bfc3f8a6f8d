"""What only we promise: first batch, resuming, memory, and eight ranks for the work of one: `python own.py FOLDER`."""

from __future__ import annotations

import subprocess
import sys
import time

from rig.answers import answer, memory_mb

from cargobike.data.loading.loader import Loader

COLUMNS = {"x": [f"f{number}" for number in range(28)], "y": "label"}
GROUP_MB = 50_000 * 29 * 4 / 2**20


def make(folder: str, **ranks: int) -> Loader:
    return Loader(f"{folder}/higgs.parquet", 1024, columns=COLUMNS, shuffle=True, seed=7, **ranks)  # type: ignore[arg-type]


def main() -> None:
    folder = sys.argv[1]
    next(iter(Loader({"x": [1.0]})))  # what is imported late is imported now
    before_mb = memory_mb()["rss_mb"]
    began = time.perf_counter()
    loader = make(folder)
    iterator = iter(loader)
    next(iterator)
    first_s = time.perf_counter() - began
    states = [loader.state_dict() for _ in iterator]
    grown_mb = memory_mb()["peak_rss_mb"] - before_mb
    resumed = []
    for state in states[:: len(states) // 20]:
        again = make(folder)
        began = time.perf_counter()
        again.load_state_dict(state)
        loaded_s = time.perf_counter() - began
        reading = iter(again)
        next(reading)
        resumed.append((time.perf_counter() - began, loaded_s))
        del reading
    answer(
        first_s=first_s,
        grown_groups=grown_mb / GROUP_MB,
        counted_groups=loader.stats.peak_bytes / 2**20 / GROUP_MB,
        resumed_ms=max(seconds for seconds, _ in resumed) * 1000,
        loaded_ms=max(seconds for _, seconds in resumed) * 1000,
        eight_to_one=_processor_s(folder, 8) / _processor_s(folder, 1),
    )


def _processor_s(folder: str, ranks: int) -> float:
    """Return the processor time of an epoch of all ranks, each in a process of its own, as in a gang."""
    commands = [[sys.executable, __file__, folder, str(rank), str(ranks)] for rank in range(ranks)]
    return sum(float(subprocess.run(each, capture_output=True, check=True, timeout=120).stdout) for each in commands)


def be_rank(folder: str, rank: int, ranks: int) -> None:
    """Print the processor time of an epoch; the first one, which also takes its memory, does not count."""
    loader = make(folder, rank=rank, world_size=ranks)
    spent = []
    for _ in range(6):
        began = time.process_time()
        rows = sum(len(batch["y"]) for batch in loader)
        spent.append(time.process_time() - began)
        assert rows == 2_000_000 // ranks
    print(min(spent[1:]))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        be_rank(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
