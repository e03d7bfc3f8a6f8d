"""What only we promise: first batch, resuming, memory, and eight ranks for the work of one: `python own.py FOLDER`."""

from __future__ import annotations

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
    gangs = [[make(folder, rank=rank, world_size=ranks) for rank in range(ranks)] for ranks in (1, 8)]
    spent: list[list[float]] = [[], []]
    for _ in range(6):
        for gang, times in zip(gangs, spent, strict=True):
            began = time.process_time()
            rows = sum(len(batch["y"]) for each in gang for batch in each)
            times.append(time.process_time() - began)
            assert rows == 2_000_000
    answer(
        first_s=first_s,
        grown_groups=grown_mb / GROUP_MB,
        counted_groups=loader.stats.peak_bytes / 2**20 / GROUP_MB,
        resumed_ms=max(seconds for seconds, _ in resumed) * 1000,
        loaded_ms=max(seconds for _, seconds in resumed) * 1000,
        eight_to_one=min(spent[1][1:]) / min(spent[0][1:]),  # the first epoch also takes its memory
    )


if __name__ == "__main__":
    main()
