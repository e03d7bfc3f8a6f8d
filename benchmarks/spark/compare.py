"""Searches, gangs and faults on a real Spark cluster on this machine, beside what Spark's users have today.

    python benchmarks/spark/compare.py            # everything, some minutes
    python benchmarks/spark/compare.py search     # or one of: search, gang, killed

Two Spark workers with one core each; on one of them a trial takes four times as long. Trials sleep, so that a busy
machine changes little. Every system has its turn in each round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from trials import SLOWNESS, TRIAL_S, executor_above, hang_once, one_trial, train, train_locally

from cargobike import experiment, project
from cargobike.core.facts import AttemptLost, AttemptStarted, Fact, Reported, TrialEnded, unpack_number
from cargobike.engines.spark.engine import SparkEngine
from cargobike.testing.spark_cluster import SparkCluster

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rig.venvs import python_of  # noqa: E402 - a neighbour of this folder

TRIALS = 40
ROUNDS = 3
SEARCH_ROUNDS = 2
PATIENCE_S = 120.0
FAST, SLOW = "127.0.0.2", "127.0.0.3"


Figures = tuple[float, float]
"""Wall time, and the busy time of all workers together."""


def ours(context: Any) -> Figures:
    begun = time.monotonic()
    result = experiment.launch(
        train, {"i": list(range(TRIALS))}, engine=SparkEngine(context), workers=2, quiet=True, direction="min"
    )
    return time.monotonic() - begun, sum(trial.value or 0.0 for trial in result.trials)


def ours_locally(_: Any) -> Figures:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        space = {"i": list(range(TRIALS)), "folder": [folder]}
        result = experiment.launch(train_locally, space, workers=2, quiet=True, direction="min")
    return time.monotonic() - begun, sum(trial.value or 0.0 for trial in result.trials)


def one_stage(context: Any, partitions: int) -> Figures:
    """All trials as one job: none of them can be chosen by what another one found."""
    begun = time.monotonic()
    done = context.parallelize(range(TRIALS), partitions).map(one_trial).collect()
    return time.monotonic() - begun, sum(busy for _, busy in done)


def waves(context: Any) -> Figures:
    """A job for each two trials, so that the next ones can be chosen by what the last ones found."""
    begun, busy = time.monotonic(), 0.0
    for first in range(0, TRIALS, 2):
        busy += sum(s for _, s in context.parallelize(range(first, first + 2), 2).map(one_trial).collect())
    return time.monotonic() - begun, busy


def hyperopt(cluster: SparkCluster) -> Figures | None:
    try:
        python = python_of("hyperopt", HERE.parents[1])
    except subprocess.CalledProcessError as error:
        print(f"hyperopt cannot be installed: {error}", file=sys.stderr)
        return None
    program = HERE / "hyperopt_trials.py"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "PYSPARK_PYTHON": str(python),
        "SETTINGS": json.dumps(cluster.settings(spark__pyspark__python=str(python)) | {"spark.master": cluster.master}),
    }
    done = subprocess.run(
        [str(python), str(program), str(TRIALS), str(TRIAL_S)],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    wall_s, busy_s = json.loads(done.stdout.splitlines()[-1])
    return float(wall_s), float(busy_s)


def search(cluster: SparkCluster, session: SparkSession) -> None:
    context = session.sparkContext
    ways: dict[str, Callable[[], Figures]] = {
        "Cargobike on Spark": lambda: ours(context),
        "Cargobike on this machine": lambda: ours_locally(context),
        "Spark, one job, one task for each trial": lambda: one_stage(context, TRIALS),
        "Spark, one job, one partition for each slot": lambda: one_stage(context, 2),
        "Spark, one job for each two trials": lambda: waves(context),
    }
    found: dict[str, list[Figures]] = {name: [] for name in ways}
    context.parallelize(range(8), 8).count()  # executors and their Python are there before anybody is timed
    for _ in range(SEARCH_ROUNDS):
        for name, run in ways.items():
            found[name].append(run())
    session.stop()  # hyperopt brings an application of its own
    alone = hyperopt(cluster)
    if alone is not None:
        found["hyperopt SparkTrials (one run)"] = [alone]
    best = statistics.median(wall for wall, _ in found["Cargobike on Spark"])
    rows = []
    for name, runs in found.items():
        wall = statistics.median(wall for wall, _ in runs)
        idle = statistics.median(1 - busy / (2 * wall) for wall, busy in runs)
        rows.append([name, f"{wall:.1f}", f"{wall / best:.2f}", f"{100 * idle:.0f} %"])
    show(
        f"{TRIALS} trials of {TRIAL_S} s, one of two workers {SLOWNESS} times slower", rows, "seconds", "× ours", "idle"
    )


def first_steps(steps: int = 20) -> float:
    """Train something tiny together; imports torch itself, as a function of TorchDistributor must."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    if not dist.is_initialized():
        dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    for _ in range(steps):
        model(torch.ones(8, 4)).sum().backward()
    total = torch.ones(1)
    dist.all_reduce(total)
    return float(total)


def gang(_: SparkCluster, session: SparkSession) -> None:
    from pyspark.ml.torch.distributor import TorchDistributor

    def distributor() -> None:
        assert TorchDistributor(num_processes=2, local_mode=False, use_gpu=False).run(first_steps) == 2.0

    def cargobike() -> None:
        run = experiment.allreduce(first_steps, workers=2, engine=SparkEngine(session), quiet=True)
        assert run.values == [2.0, 2.0]

    found: dict[str, list[float]] = {"Cargobike allreduce": [], "TorchDistributor": []}
    for count in range(ROUNDS + 1):
        for name, run in zip(found, (cargobike, distributor), strict=True):
            begun = time.monotonic()
            call = threading.Thread(target=run, daemon=True)  # TorchDistributor has been seen to hang for ever
            call.start()
            call.join(PATIENCE_S)
            if call.is_alive():
                print(f"{name} has not ended within {PATIENCE_S:g} s, in round {count}; no more rounds.\n")
                return
            if count:
                found[name].append(time.monotonic() - begun)
    ratio = statistics.median(b / a for a, b in zip(*found.values(), strict=True))
    rows = [[name, f"{statistics.median(s):.1f}", f"{min(s):.1f} … {max(s):.1f}"] for name, s in found.items()]
    show("Two ranks on two nodes, 20 steps: the whole call", rows, "seconds", "range")
    print(f"TorchDistributor takes {ratio:.1f} times as long (median of ratios within rounds).\n")


class Killer:
    """Kills the executor of the first trial when the other worker is at work, and waits for its second attempt."""

    def __init__(self) -> None:
        self.killed_at = self.lost_at = self.again_at = 0.0
        self._executor = 0
        self._ended = 0

    def on_facts(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if isinstance(fact, Reported):
                self._executor = int(unpack_number(fact.metrics["executor"]))
            self._ended += isinstance(fact, TrialEnded)
            if self._executor and self._ended >= 3 and not self.killed_at:
                self.killed_at = time.monotonic()
                os.kill(self._executor, 9)
            elif isinstance(fact, AttemptLost) and not self.lost_at:
                self.lost_at = time.monotonic()
            elif isinstance(fact, AttemptStarted) and fact.attempt > 1 and not self.again_at:
                self.again_at = time.monotonic()


def killed(_: SparkCluster, session: SparkSession) -> None:
    context = session.sparkContext
    noticed, again, spark_again = [], [], []
    for _round in range(ROUNDS):
        wait_for_executors(context)
        killer = Killer()
        space = {"i": list(range(60))}  # enough to keep the other worker busy all the time
        experiment.launch(hang_once, space, engine=SparkEngine(context), workers=2, callbacks=[killer], quiet=True)
        noticed.append(killer.lost_at - killer.killed_at)
        again.append(killer.again_at - killer.killed_at)
        wait_for_executors(context)
        spark_again.append(_kill_a_task(context))
    rows = [
        ["Cargobike: the loss is noticed", f"{statistics.median(noticed):.2f}", _range(noticed)],
        ["Cargobike: its trial runs again", f"{statistics.median(again):.2f}", _range(again)],
        ["Spark: its task runs again", f"{statistics.median(spark_again):.2f}", _range(spark_again)],
    ]
    show("Seconds after kill -9 of an executor, with another one that works", rows, "seconds", "range")


def _kill_a_task(context: Any) -> float:
    """Kill the executor of a plain task; returns after how long Spark has started it again."""
    with tempfile.TemporaryDirectory() as folder:

        def task(i: int) -> None:
            from pyspark import TaskContext

            attempt = TaskContext.get().attemptNumber()
            if i == 0:
                Path(folder, f"{attempt}.new").write_text(str(executor_above()))
                os.rename(Path(folder, f"{attempt}.new"), Path(folder, str(attempt)))
                time.sleep(600 if attempt == 0 else 0)
            time.sleep(0.2)

        job = threading.Thread(target=lambda: context.parallelize(range(6), 6).foreach(task))
        job.start()
        _await(Path(folder, "0").exists)
        begun = time.monotonic()
        os.kill(int(Path(folder, "0").read_text()), 9)
        _await(Path(folder, "1").exists)
        took = time.monotonic() - begun
        job.join()
    return took


def wait_for_executors(context: Any) -> None:
    _await(lambda: len(context._jsc.sc().statusTracker().getExecutorInfos()) == 3)


def _await(condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} … {max(values):.2f}"


def show(title: str, rows: list[list[str]], *heads: str) -> None:
    print(f"### {title}\n\n| | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(f"\nLoad average: {os.getloadavg()[0]:.1f}.\n", flush=True)


def main(wanted: list[str]) -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])  # for plain Spark jobs
    parts = {"search": search, "killed": killed, "gang": gang}
    with (
        tempfile.TemporaryDirectory() as folder,
        SparkCluster((FAST, SLOW), cores=1, environment={SLOW: {"SLOWNESS": str(SLOWNESS)}}) as cluster,
    ):
        project.use(folder)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        for name in wanted or parts:
            builder = SparkSession.builder.master(cluster.master)
            for setting, value in cluster.settings().items():
                builder = builder.config(setting, value)
            session = builder.getOrCreate()
            parts[name](cluster, session)
            session.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
