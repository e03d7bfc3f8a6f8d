"""Ops of a job of Dagster, measured from inside; prints one JSON object. Called by `step_overhead.py`."""

import json
import sys
import time
from typing import Any

from dagster import (
    DagsterInstance,
    DynamicOut,
    DynamicOutput,
    execute_job,
    job,
    multiprocess_executor,
    op,
    reconstructable,
)

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 5


@op(out=DynamicOut())  # type: ignore[untyped-decorator]
def numbers() -> Any:
    """Yield as many numbers as there are to be ops."""
    for number in range(STEPS):
        yield DynamicOutput(number, mapping_key=str(number))


@op  # type: ignore[untyped-decorator]
def plain(number: int) -> int:
    """Do nothing."""
    return number


@job  # type: ignore[untyped-decorator]
def here() -> None:
    """Run in one process."""
    numbers().map(plain)


@job(executor_def=multiprocess_executor.configured({"max_concurrent": 1}))  # type: ignore[untyped-decorator]
def in_processes() -> None:
    """Run each op in a process of its own."""
    numbers().map(plain)


def main() -> None:
    figures: dict[str, float] = {}
    with DagsterInstance.local_temp() as instance:
        begun = time.perf_counter()
        assert here.execute_in_process(instance=instance).success
        figures["step in this process ms"] = 1000 * (time.perf_counter() - begun) / STEPS
        begun = time.perf_counter()
        assert execute_job(reconstructable(in_processes), instance=instance).success
        figures["process step ms"] = 1000 * (time.perf_counter() - begun) / STEPS
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
