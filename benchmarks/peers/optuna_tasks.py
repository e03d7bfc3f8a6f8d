"""Optuna on its journal storage (each call forced to disk): the peer for durability, start-up and memory.

Two processes on one journal is Optuna's own way to use two cores. Its sampler is set to random search, so
that what is measured is the machinery and not the default sampler, which slows down with every trial.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from rig.answers import answer, append, folder, lines, mark, memory_mb, numbers

optuna.logging.disable_default_handler()


def _study() -> optuna.Study:
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(os.path.join(folder(), "journal"))),
        study_name="bench",
        sampler=optuna.samplers.RandomSampler(),
        direction="maximize",
        load_if_exists=True,
    )


def _no_op(trial: optuna.Trial) -> float:
    return float(trial.suggest_float("x", 0, 1))


def _optimize(count: int) -> None:
    study = _study()
    study.optimize(_no_op, n_trials=count)
    found = memory_mb()
    append("memory", f"{found['rss_mb']} {found['pss_mb']} {found['peak_rss_mb']}")


def _search(count: int) -> float:
    """Run `count` trials in two processes; return the seconds from the first start to the last end."""
    study = _study()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_optimize, args=(count // 2,)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    trials = study.get_trials(deepcopy=False)
    assert len(trials) == count
    starts = [trial.datetime_start for trial in trials if trial.datetime_start]
    ends = [trial.datetime_complete for trial in trials if trial.datetime_complete]
    return float((max(ends) - min(starts)).total_seconds())


def throughput(count: int) -> None:
    called = time.time()
    seconds = _search(count)
    answer(trials=count, seconds=seconds, call_s=time.time() - called)


def first() -> None:
    def objective(trial: optuna.Trial) -> float:
        mark("first")
        return float(trial.suggest_float("x", 0, 1))

    _study().optimize(objective, n_trials=1)
    answer()


def report(count: int) -> None:
    def objective(trial: optuna.Trial) -> float:
        began, cpu_began = time.perf_counter(), time.thread_time()
        for step in range(count):
            trial.report(0.5, step)
        append("cpu_seconds", repr(time.thread_time() - cpu_began))
        append("seconds", repr(time.perf_counter() - began))
        return float(trial.suggest_float("x", 0, 1))

    study = _study()
    study.optimize(objective, n_trials=1)
    answer(
        us=numbers("seconds")[0] / count * 1e6,
        cpu_us=numbers("cpu_seconds")[0] / count * 1e6,
        sent=count,
        kept=len(study.trials[0].intermediate_values),
    )


def stop(count: int) -> None:
    """Measure how long the asking takes: nothing is pushed, the answer is computed in the trial itself."""

    def objective(trial: optuna.Trial) -> float:
        value = float(trial.suggest_float("x", 0, 1))
        reported = time.time()
        trial.report(value, 0)
        asked = time.time()
        if trial.should_prune():
            seen = time.time()
            append("asked", repr((seen - asked) * 1e3))
            append("whole", repr((seen - reported) * 1e3))
            raise optuna.TrialPruned
        return value

    study = _study()
    study.pruner = optuna.pruners.ThresholdPruner(lower=2.0)
    study.optimize(objective, n_trials=count)
    answer(ms=numbers("asked"), since_report_ms=numbers("whole"))


def memory(count: int) -> None:
    """Both optimizing processes hold all trials; the smaller one of the two is taken."""
    _search(count)
    rows = [float(word) for word in lines("memory")]
    answer(trials=count, rss_mb=min(rows[0::3]), pss_mb=min(rows[1::3]), peak_rss_mb=min(rows[2::3]))


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    {"throughput": throughput, "report": report, "stop": stop, "memory": memory}.get(task, lambda _count: first())(
        int(arguments[0]) if arguments else 0
    )
