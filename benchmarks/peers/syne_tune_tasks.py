"""Syne Tune's local backend: a new interpreter for each trial, found out about by polling.

Measured with a poll of 50 ms; its default of 5 s is slower by that much wherever something has to be noticed.
Called without a task, this file is the training script that the backend starts.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from typing import Any

from rig.answers import answer, append, folder, mark, memory_mb, numbers

POLL_S = 0.05


def _train() -> None:
    import argparse

    from syne_tune import Reporter

    parser = argparse.ArgumentParser()
    for name in ("x", "task", "count"):
        parser.add_argument(f"--{name}")
    arguments, _ = parser.parse_known_args()
    reporter, value = Reporter(), float(arguments.x)
    if arguments.task == "first":
        mark("first")
    elif arguments.task == "throughput":
        append("times", repr(time.time()))
    elif arguments.task == "report":
        count = int(arguments.count)
        began, cpu_began = time.perf_counter(), time.thread_time()
        for step in range(count):
            reporter(value=0.5, epoch=step)
        append("cpu_seconds", repr(time.thread_time() - cpu_began))
        append("seconds", repr(time.perf_counter() - began))
        return
    if arguments.task == "stop":
        append("reported", repr(time.time()))
    reporter(value=value)
    if arguments.task == "stop":
        time.sleep(60)
    elif arguments.task == "lost":
        time.sleep(0.3)
        append("killed", repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)


def _tune(task: str, count: int, *, sent: int = 0, workers: int = 2) -> Any:
    os.environ["SYNETUNE_FOLDER"] = folder()
    from syne_tune import Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.config_space import uniform
    from syne_tune.optimizer.baselines import RandomSearch
    from syne_tune.optimizer.scheduler import SchedulerDecision

    logging.disable(logging.CRITICAL)

    class Search(RandomSearch):  # type: ignore[misc]
        def on_trial_result(self, trial: Any, result: dict[str, Any]) -> Any:
            decision = super().on_trial_result(trial, result)
            if task == "stop":
                append("decided", repr(time.time()))
                return SchedulerDecision.STOP
            return decision

        def on_trial_error(self, trial: Any) -> None:
            append("noticed", repr(time.time()))
            super().on_trial_error(trial)

    class Backend(LocalBackend):  # type: ignore[misc]
        def _stop_trial(self, trial_id: int, result: Any) -> None:
            super()._stop_trial(trial_id, result)
            append("seen", repr(time.time()))

    def enough(status: Any) -> bool:
        done = status.num_trials_finished if task in {"stop", "lost"} else status.num_trials_started
        return bool(done >= count)

    space = {"x": uniform(0, 1), "task": task, "count": sent}
    tuner = Tuner(
        trial_backend=Backend(entry_point=__file__),
        scheduler=Search(space, metrics=["value"], do_minimize=False),
        stop_criterion=enough,
        n_workers=workers,
        sleep_time=POLL_S,
        max_failures=1000,
        wait_trial_completion_when_stopping=task not in {"stop", "lost"},
        suffix_tuner_name=False,
        tuner_name="bench",
        save_tuner=False,
    )
    tuner.run()
    return tuner


def throughput(count: int) -> None:
    called = time.time()
    _tune("throughput", count)
    times = sorted(numbers("times"))
    answer(trials=len(times) - 1, seconds=times[-1] - times[0], call_s=time.time() - called, **memory_mb())


def first() -> None:
    _tune("first", 1, workers=1)
    answer()


def report(count: int) -> None:
    tuner = _tune("report", 1, sent=count, workers=1)
    kept = sum(len(rows) for rows in _results(tuner))
    answer(
        us=numbers("seconds")[0] / count * 1e6, cpu_us=numbers("cpu_seconds")[0] / count * 1e6, sent=count, kept=kept
    )


def _results(tuner: Any) -> list[list[Any]]:
    backend = tuner.trial_backend
    return [trial.metrics for trial in backend._all_trial_results(list(backend._trial_dict))]


def stop(count: int) -> None:
    """A stopped process is killed: it sees the end of its life, not a request."""
    _tune("stop", count, workers=1)
    reported, decided, seen = (sorted(numbers(name))[:count] for name in ("reported", "decided", "seen"))
    answer(
        ms=[(end - start) * 1e3 for start, end in zip(decided, seen, strict=True)],
        since_report_ms=[(end - start) * 1e3 for start, end in zip(reported, seen, strict=True)],
    )


def lost(count: int) -> None:
    _tune("lost", count, workers=1)
    pairs = zip(sorted(numbers("killed")), sorted(numbers("noticed")), strict=False)
    answer(ms=[(noticed - killed) * 1e3 for killed, noticed in pairs])


if __name__ == "__main__":
    if sys.argv[1].startswith("--"):
        _train()
    elif sys.argv[1] == "first":
        first()
    else:
        task, argument = sys.argv[1:]
        {"throughput": throughput, "report": report, "stop": stop, "lost": lost}[task](int(argument))
