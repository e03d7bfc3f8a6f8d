"""Steps of a pipeline of ours, measured from inside; prints one JSON object. Called by `step_overhead.py`."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from cargobike import pipelines, project


@pipelines.step
def plain(number: int) -> int:
    """Do nothing, in a process of its own."""
    return number


@pipelines.step(cache=True)
def cached(number: int) -> int:
    """Do nothing, or not even that."""
    return number


def one_after_the_other(count: int) -> None:
    """Wait for each step before the next."""
    for number in range(count):
        plain(number).result()


def from_the_cache(count: int) -> None:
    """Wait for each step before the next; all are cached the second time."""
    for number in range(count):
        cached(number).result()


def many(count: int) -> None:
    """Ask for all steps at once, and fail at the end, so that the run can be resumed."""
    for result in plain.map(range(count)):
        result.result()
    raise RuntimeError("the end")


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Return wall time and processor time, of this process and those that it waited for."""
    begun, cpu = time.perf_counter(), _cpu_s()
    try:
        work()
    except RuntimeError as error:
        if str(error) != "the end":
            raise
    return time.perf_counter() - begun, _cpu_s() - cpu


def _cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> None:
    steps, all_steps = int(sys.argv[1]), int(sys.argv[2])
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        project.use(folder)
        pipelines.run(one_after_the_other, count=1)

        def note(name: str, count: int, work: Callable[[], Any]) -> None:
            wall_s, cpu_s = measured(work)
            figures[f"{name} ms"], figures[f"{name} cpu ms"] = 1000 * wall_s / count, 1000 * cpu_s / count

        note("process step", steps, lambda: pipelines.run(one_after_the_other, count=steps))
        pipelines.run(from_the_cache, count=steps)
        note("cached step", steps, lambda: pipelines.run(from_the_cache, count=steps))
        if all_steps:
            note("one of many", all_steps, lambda: pipelines.run(many, count=all_steps, run_id="many"))
            note("resume", 1, lambda: pipelines.resume("many", many))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
