"""Tasks of a flow of Prefect, measured from inside; prints one JSON object. Called by `step_overhead.py`."""

from __future__ import annotations

import json
import sys
import time

from prefect import flow, task
from prefect.cache_policies import INPUTS
from prefect.task_runners import ProcessPoolTaskRunner


@task  # type: ignore[untyped-decorator]
def plain(number: int) -> int:
    """Do nothing."""
    return number


@task(cache_policy=INPUTS, persist_result=True)  # type: ignore[untyped-decorator]
def cached(number: int) -> int:
    """Do nothing, or not even that."""
    return number


@flow(log_prints=False)  # type: ignore[untyped-decorator]
def from_the_cache(count: int) -> None:
    """Wait for each task before the next."""
    for number in range(count):
        cached(number)


@flow(task_runner=ProcessPoolTaskRunner(max_workers=1))  # type: ignore[untyped-decorator]
def in_processes(count: int) -> None:
    """Wait for each task before the next, in another process that is used again."""
    for number in range(count):
        plain.submit(number).result()


def main() -> None:
    steps = int(sys.argv[1])
    figures: dict[str, float] = {}
    from_the_cache(steps)
    begun = time.perf_counter()
    from_the_cache(steps)
    figures["cached step ms"] = 1000 * (time.perf_counter() - begun) / steps
    in_processes(1)
    begun = time.perf_counter()
    in_processes(steps)
    figures["process step ms"] = 1000 * (time.perf_counter() - begun) / steps
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
