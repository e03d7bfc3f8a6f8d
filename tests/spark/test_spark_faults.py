"""What is killed on Spark costs one attempt of one trial, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext

from cargobike import experiment, trial
from cargobike.core.facts import Fact, Reported, unpack_number
from cargobike.core.records import ExperimentState, Resources
from cargobike.engines.spark.engine import SparkEngine
from cargobike.testing.reception import descendants, is_running, wait_until
from cargobike.testing.spark_cluster import SparkCluster

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)

WHOLE_EXECUTOR = Resources(cpus=2, gpus=0)


def ancestors() -> dict[str, int]:
    """Return the processes above a runner, by name."""
    names = ("runner", "template", "agent", "host", "worker", "daemon", "executor")
    found, pid = {}, os.getpid()
    for name in names:
        found[name] = pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def hang_at_first(x: int) -> float:
    if x == 0 and trial.attempt == 1:
        trial.report(step=0, **{name: float(pid) for name, pid in ancestors().items()})
        time.sleep(1000)
    return float(x)


class WhenReported:
    """Does something once, when the first trial has said which processes it consists of."""

    def __init__(self, do: Callable[[dict[str, int]], None]) -> None:
        self._do = do
        self.processes: dict[str, int] = {}

    def on_facts(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if isinstance(fact, Reported) and not self.processes:
                self.processes = {name: int(unpack_number(pid)) for name, pid in fact.metrics.items()}
                self._do(self.processes)


@pytest.mark.parametrize("victim", ["executor", "worker", "agent"])
def test_a_kill_costs_one_attempt_of_one_trial(spark_application: SparkContext, victim: str) -> None:
    callback = WhenReported(lambda pids: os.kill(pids[victim], signal.SIGKILL))
    result = experiment.launch(
        hang_at_first,
        {"x": [0, 1, 2, 3, 4, 5]},
        engine=SparkEngine(spark_application),
        resources=WHOLE_EXECUTOR,
        workers=2,
        callbacks=[callback],
        quiet=True,
    )
    assert {t.params["x"]: t.value for t in result.trials} == {x: float(x) for x in range(6)}
    assert [t.attempts for t in result.trials] == [2, 1, 1, 1, 1, 1]
    left = {name: pid for name, pid in callback.processes.items() if name not in ("daemon", "executor")}
    wait_until(lambda: not any(map(is_running, left.values())), lambda: time.sleep(0.05), f"{left} have ended")
    wait_until(
        lambda: len(spark_application._jsc.sc().statusTracker().getExecutorInfos()) == 3,
        lambda: time.sleep(0.1),
        "the executors are complete again, beside the driver",
    )


def test_an_interrupted_search_leaves_no_task_running(spark_application: SparkContext) -> None:
    callback = WhenReported(lambda _: os.kill(os.getpid(), signal.SIGINT))
    result = experiment.launch(
        hang_at_first,
        {"x": [0, 1]},
        engine=SparkEngine(spark_application),
        workers=2,
        resources=WHOLE_EXECUTOR,
        callbacks=[callback],
        quiet=True,
    )
    assert result.state is ExperimentState.INTERRUPTED
    assert not any(is_running(callback.processes[name]) for name in ("runner", "template", "agent", "host"))
    assert not spark_application.statusTracker().getActiveJobsIds()
    assert spark_application.parallelize(range(4), 4).map(lambda x: x + 1).sum() == 10


def crash_on_bad_node(x: int) -> float:
    time.sleep(0.3)  # so that trials are left when the bad node has its next worker
    if os.environ["SPARK_LOCAL_IP"] == "127.0.0.2":
        os.kill(os.getpid() if x % 2 else ancestors()["agent"], signal.SIGKILL)
        time.sleep(1000)
    return float(x)


def test_an_executor_on_which_trials_keep_dying_gets_no_more(
    spark_application: SparkContext, caplog: pytest.LogCaptureFixture
) -> None:
    result = experiment.launch(
        crash_on_bad_node,
        {"x": list(range(40))},
        engine=SparkEngine(spark_application),
        workers=2,
        resources=WHOLE_EXECUTOR,
        quiet=True,
    )
    assert "127.0.0.2 gets no more workers" in caplog.text
    deaths = sum(t.state.value == "failed" for t in result.trials) + sum(t.attempts - 1 for t in result.trials)
    assert 3 <= deaths <= 4
    assert sum(t.state.value == "completed" for t in result.trials) >= 37


DRIVER = """
import sys
from cargobike import experiment
from cargobike.engines.spark.engine import SparkEngine
sys.path.insert(0, {folder!r})
from test_spark_faults import Tell, hang_at_first
engine = SparkEngine(master={master!r}, conf={conf!r})
experiment.launch(
    hang_at_first, {{"x": [1, 2, 0, 3]}}, optimizer="grid", workers=1, engine=engine, callbacks=[Tell()], quiet=True
)
"""


class Tell:
    """Prints which processes the first trial consists of."""

    def on_facts(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if isinstance(fact, Reported):
                print(" ".join(f"{unpack_number(pid):.0f}" for name, pid in fact.metrics.items()), flush=True)


def test_nothing_outlives_a_driver_that_was_killed_and_its_search_can_be_resumed(
    spark_cluster: SparkCluster, spark_applications: SparkApplications
) -> None:
    conf = spark_cluster.settings(spark__cores__max="1", spark__executor__cores="1")
    program = DRIVER.format(folder=str(Path(__file__).parent), master=spark_cluster.master, conf=conf)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        theirs = [*map(int, driver.stdout.readline().split())]
        assert len(theirs) == 7
        theirs += descendants(driver.pid)
        driver.kill()
    wait_until(lambda: not any(map(is_running, theirs)), lambda: time.sleep(0.1), f"{theirs} have ended")
    engine = SparkEngine(spark_applications.context())
    result = experiment.resume("last", engine=engine, quiet=True)
    assert [(t.params["x"], t.value, t.attempts) for t in result.trials] == [(1, 1, 1), (2, 2, 1), (0, 0, 2), (3, 3, 1)]


FORKS_AND_WAITS = """
    import os, sys, time
    from cargobike.engines.spark.session import OwnContext

    if __name__ == "__main__":
        own = OwnContext("local[1]", {})
        child = os.fork()
        if child == 0:
            time.sleep(1000)
        print(own.java_pid, child, flush=True)
        time.sleep(1000)
"""


def test_a_copy_of_the_driver_that_lives_on_does_not_hold_java_up(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(FORKS_AND_WAITS))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        java, copy = map(int, driver.stdout.readline().split())
        try:
            driver.kill()
            wait_until(lambda: not is_running(java), lambda: time.sleep(0.05), "Spark's Java has ended")
            assert is_running(copy), "it was the copy that could have held it up"
        finally:
            os.kill(copy, signal.SIGKILL)
