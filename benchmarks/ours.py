"""Cargobike, through its front door only: what a user would write.

Called like the peers' programs, `python ours.py TASK [ARGUMENT ...]`; its project lies in the run's folder.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

os.environ["CARGOBIKE_PROJECT"] = os.path.join(os.environ["BENCH_FOLDER"], "project")

from rig.answers import answer, append, lines, mark, memory_mb, numbers, tree_memory

from cargobike import Searchspace, experiment, trial

Isolation = Literal["fresh", "reuse"]
Durability = Literal["process", "power"]


def _journal() -> bytes:
    """Read the newest journal as anybody could, without our own code."""
    from glob import glob  # not at the top: what a run does not need would count as its start-up time

    newest = max(glob(os.path.join(os.environ["CARGOBIKE_PROJECT"], "experiments", "*", "journal.jsonl")))
    with open(newest, "rb") as file:
        return file.read()


def _facts(journal: bytes, *kinds: str) -> list[dict[str, Any]]:
    """Return the facts of some kinds; other lines are not parsed, for that would count as the run's CPU time."""
    import json

    keys = tuple(f'{{"fact":"{kind}"'.encode() for kind in kinds)
    return [json.loads(line) for line in journal.splitlines() if line.startswith(keys) and line.endswith(b"}")]


def _space() -> Searchspace:
    return Searchspace(x=("DOUBLE", [0, 1]))


def no_op(x: float) -> float:
    return x


def throughput(count: str, isolation: Isolation, durability: Durability) -> None:
    called = time.time()
    result = experiment.launch(
        no_op,
        _space(),
        optimizer="randomsearch",
        num_trials=int(count),
        workers=2,
        isolation=isolation,
        durability=durability,
        quiet=True,
    )
    call_s = time.time() - called
    journal = _journal()
    assert journal.count(b'"state":"completed","value"') == len(result.trials) == int(count)
    starts = [one.started_at for one in result.trials if one.started_at]
    ends = [one.ended_at for one in result.trials if one.ended_at]
    answer(trials=int(count), seconds=max(ends) - min(starts), call_s=call_s)


def first(isolation: Isolation) -> None:
    def train(x: float) -> float:
        mark("first")
        return x

    experiment.launch(train, _space(), num_trials=1, isolation=isolation, quiet=True)
    answer()


def report(count: str) -> None:
    def train(x: float, count: int) -> float:
        began, cpu_began = time.perf_counter(), time.thread_time()
        for step in range(count):
            trial.report(loss=0.5, step=step)
        append("cpu_seconds", repr(time.thread_time() - cpu_began))
        append("seconds", repr(time.perf_counter() - began))
        return x

    experiment.launch(train, params={"x": 0.5, "count": int(count)}, quiet=True)
    steps = [fact["step"] for fact in _facts(_journal(), "reported")]
    kept = len(set(steps)) if len(set(steps)) == len(steps) else 0
    answer(
        us=numbers("seconds")[0] / int(count) * 1e6,
        cpu_us=numbers("cpu_seconds")[0] / int(count) * 1e6,
        sent=int(count),
        kept=kept,
    )


def stop(count: str) -> None:
    """Stop every trial at its only report, which waits for the verdict: it is seen at that very step."""
    from cargobike import AbstractOptimizer, Trial

    decided: list[float] = []

    class Stopping(AbstractOptimizer):
        def initialize(self) -> None:
            pass

        def get_suggestion(self, trial: Trial | None = None) -> dict[str, float]:
            return {"x": self.rng.random()}

        def early_check(self, to_check: Sequence[Trial], trials: Sequence[Trial], direction: str) -> Iterable[Trial]:
            decided.append(time.time())
            return to_check

    def train(x: float) -> float:
        append("reported", repr(time.time()))
        try:
            trial.report(score=x)
        except trial.TrialStopped:
            append("seen", repr(time.time()))
            raise
        return x

    experiment.launch(
        train, _space(), optimizer=Stopping(), num_trials=int(count), workers=1, isolation="reuse", quiet=True
    )
    reported, seen = numbers("reported"), numbers("seen")
    answer(
        ms=[(end - start) * 1e3 for start, end in zip(decided, seen, strict=True)],
        since_report_ms=[(end - start) * 1e3 for start, end in zip(reported, seen, strict=True)],
    )


def interrupt(count: str) -> None:
    """Stop trials that report nothing, by Ctrl-C: from the signal to the trial's flag."""
    import signal
    import threading

    def train(x: float) -> float:
        append("running", "1")
        while not trial.should_stop:
            pass
        append("seen", repr(time.time()))
        return x

    decided: list[float] = []

    def press() -> None:
        while len(lines("running")) <= len(decided):
            time.sleep(0.005)
        time.sleep(0.05)
        decided.append(time.time())
        os.kill(os.getpid(), signal.SIGINT)

    for _ in range(int(count)):
        thread = threading.Thread(target=press)
        thread.start()
        experiment.launch(train, params={"x": 0.5}, quiet=True)
        thread.join()
    delays = [(end - start) * 1e3 for start, end in zip(decided, numbers("seen"), strict=True)]
    answer(ms=delays, since_report_ms=delays)


def lost(count: str) -> None:
    """Kill the worker under each trial's first attempt, and read in the journal when the driver knew."""
    import signal
    import threading

    def train(x: float) -> float:
        if trial.attempt == 1:
            append("running", "1")
            time.sleep(30)
        return x

    killed: list[float] = []

    def kill() -> None:
        for number in range(int(count)):
            while len(lines("running")) <= number:
                time.sleep(0.005)
            time.sleep(0.05)
            pid = _facts(_journal(), "worker-joined")[-1]["pid"]
            killed.append(time.time())
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    experiment.launch(train, _space(), num_trials=int(count), workers=1, quiet=True)
    noticed = _facts(_journal(), "worker-lost")
    delays = [(fact["at"] - gone) * 1e3 for gone, fact in zip(killed, noticed, strict=False)]
    answer(ms=delays, reasons=[fact.get("reason", "") for fact in noticed])


def memory(count: str, optimizer: str) -> None:
    result = experiment.launch(
        no_op, _space(), optimizer=optimizer, num_trials=int(count), workers=2, isolation="reuse", quiet=True
    )
    found = memory_mb()
    assert len(result.trials) == int(count)
    answer(trials=int(count), **found)


def crowd(workers: str, rounds: str, nap_s: str) -> None:
    """Let many workers sleep through short trials; when all have come, count the processes and their memory."""
    import threading

    nap, count = float(nap_s), int(workers) * int(rounds)
    found: dict[str, float] = {}

    def train(x: float) -> float:
        time.sleep(nap)
        return x

    class WhenAllAreThere:
        def __init__(self) -> None:
            self.started = 0
            self.looker: threading.Thread | None = None

        def on_facts(self, facts: Sequence[Any]) -> None:
            self.started += sum(type(fact).__name__ == "AttemptStarted" for fact in facts)
            if self.looker is None and self.started >= count * 3 // 4:
                self.looker = threading.Thread(target=lambda: found.update(tree_memory()))
                self.looker.start()

    watch = WhenAllAreThere()
    result = experiment.launch(
        train,
        _space(),
        optimizer="randomsearch",
        num_trials=count,
        workers=int(workers),
        isolation="reuse",
        callbacks=[watch],
        quiet=True,
    )
    assert watch.looker is not None
    watch.looker.join()
    starts = [one.started_at for one in result.trials if one.started_at]
    ends = [one.ended_at for one in result.trials if one.ended_at]
    ideal_s = int(rounds) * nap
    answer(trials=count, of_ideal=ideal_s / (max(ends) - min(starts)), **found)


def simulate(workers: str, count: str, optimizer: str = "randomsearch") -> None:
    """Let virtual workers run trials of four reports each; every trial takes another time."""
    import random

    from cargobike.experiments.scheduling.simulation import SimulatedRun
    from cargobike.experiments.scheduling.simulation import simulate as run_simulation

    def train(params: dict[str, Any], seed: int) -> SimulatedRun:
        step_s = random.Random(seed).uniform(5.0, 15.0)
        return SimulatedRun(steps=[(step_s, {"score": params["x"]})] * 4, value=params["x"])

    result = run_simulation(train, _space(), optimizer=optimizer, num_trials=int(count), workers=int(workers), seed=1)
    assert len(result.trials) == int(count)
    answer(
        events=result.events,
        cpu_s=result.driver_cpu_s,
        collecting_cpu_s=result.collecting_cpu_s,
        whole_cpu_s=result.cpu_s,
        **memory_mb(),
    )


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    globals()[task](*arguments)
