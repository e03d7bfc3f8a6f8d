"""Ray Tune with a cluster of two CPUs on this machine, without dashboard and without log forwarding.

`reuse` keeps its actors for many trials, `fresh` starts one for each: its counterparts of our two kinds of
isolation.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")
os.environ.setdefault("TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S", "0")

import ray
from ray import tune
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from rig.answers import answer, append, folder, mark, memory_mb, numbers

Config = dict[str, Any]


class _Stopping(FIFOScheduler):  # type: ignore[misc]
    """Stops every trial at its first result, and notes when."""

    def on_trial_result(self, tune_controller: object, trial: object, result: Config) -> str:
        append("decided", repr(time.time()))
        return str(TrialScheduler.STOP)


class _Noticing(FIFOScheduler):  # type: ignore[misc]
    """Notes when a trial is found to be lost."""

    def on_trial_error(self, tune_controller: object, trial: object) -> None:
        append("noticed", repr(time.time()))


def _fit(train: Any, count: int, *, reuse: bool = True, scheduler: Any = None, concurrent: int = 2) -> Any:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        configure_logging=False,
    )
    tuner = tune.Tuner(
        tune.with_resources(train, {"cpu": 1}),
        param_space={"x": tune.uniform(0, 1)},
        tune_config=tune.TuneConfig(
            num_samples=count,
            max_concurrent_trials=concurrent,
            reuse_actors=reuse,
            metric="value",
            mode="max",
            scheduler=scheduler,
        ),
        run_config=tune.RunConfig(name="bench", storage_path=folder(), verbose=0),
    )
    return tuner.fit()


def _no_op(config: Config) -> Config:
    append("times", repr(time.time()))
    return {"value": config["x"]}


def throughput(count: int, isolation: str) -> None:
    called = time.time()
    grid = _fit(_no_op, count, reuse=isolation == "reuse")
    assert len(grid) == count
    assert grid.num_errors == 0
    # The function's own clock: Ray records no start, and its results have whole seconds only.
    times = sorted(numbers("times"))
    found = memory_mb()
    answer(trials=count - 1, seconds=times[-1] - times[0], call_s=time.time() - called, **found)


def first() -> None:
    def train(config: Config) -> Config:
        mark("first")
        return {"value": config["x"]}

    _fit(train, 1)
    answer()


def report(count: int) -> None:
    def train(config: Config) -> None:
        began, cpu_began = time.perf_counter(), time.thread_time()
        for _ in range(count):
            tune.report({"value": 0.5})
        append("cpu_seconds", repr(time.thread_time() - cpu_began))
        append("seconds", repr(time.perf_counter() - began))

    grid = _fit(train, 1)
    with open(os.path.join(grid[0].path, "result.json"), encoding="utf-8") as file:
        kept = sum(1 for _ in file)
    answer(
        us=numbers("seconds")[0] / count * 1e6, cpu_us=numbers("cpu_seconds")[0] / count * 1e6, sent=count, kept=kept
    )


def stop(count: int) -> None:
    def train(config: Config) -> None:
        try:
            append("reported", repr(time.time()))
            while True:
                tune.report({"value": config["x"]})
        finally:
            append("seen", repr(time.time()))

    # One trial at a time, so that the n-th decision and the n-th sight of it belong together.
    _fit(train, count, scheduler=_Stopping(), concurrent=1)
    reported, decided, seen = (sorted(numbers(name)) for name in ("reported", "decided", "seen"))
    answer(
        ms=[(end - start) * 1e3 for start, end in zip(decided, seen, strict=True)],
        since_report_ms=[(end - start) * 1e3 for start, end in zip(reported, seen, strict=True)],
    )


def lost(count: int) -> None:
    def train(config: Config) -> None:
        tune.report({"value": config["x"]})
        time.sleep(0.2)
        append("killed", repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)

    _fit(train, count, scheduler=_Noticing(), concurrent=1)
    pairs = zip(sorted(numbers("killed")), sorted(numbers("noticed")), strict=True)
    answer(ms=[(noticed - killed) * 1e3 for killed, noticed in pairs])


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    if task == "throughput":
        throughput(int(arguments[0]), arguments[1])
    elif task == "first":
        first()
    else:
        {"report": report, "stop": stop, "lost": lost}[task](int(arguments[0]))
    ray.shutdown()
