"""Files of trials reach the project from executors that do not see its disk."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from pyspark import SparkContext

from cargobike import experiment, project, tensorboard, trial
from cargobike.core.records import Resources
from cargobike.engines.spark.engine import SparkEngine
from cargobike.testing.reception import wait_until

pytestmark = pytest.mark.timeout(300)

ALONE_ON_AN_EXECUTOR = Resources(cpus=2, gpus=0)


def train(x: int, signs: str) -> float:
    begun = trial.checkpoint.load(0)
    if trial.attempt == 1:
        for step in (1, 2):
            trial.checkpoint.save(step, step=step)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    events = Path(tensorboard.logdir()) / "events"
    events.write_text("one\n")
    wait_until(Path(signs, "seen").exists, lambda: time.sleep(0.02), "the test has seen the first line")
    with events.open("a") as file:
        file.write("two\n")
    Path("model.bin").write_bytes(b"m" * 3_000_000)
    print(f"worked in {os.getcwd()}")
    trial.checkpoint.save(3, step=3)
    return float(begun)


def test_checkpoints_logs_and_artifacts_arrive(spark_application: SparkContext, tmp_path: Path) -> None:
    signs = tmp_path / "signs"
    signs.mkdir()
    root = Path(project.current().root)

    def look() -> None:
        wait_until(
            lambda: any(file.read_text() == "one\n" for file in root.glob("experiments/*/trials/0000/logs/events")),
            lambda: time.sleep(0.02),
            "the first line is in the project while the trial still runs",
        )
        (signs / "seen").touch()

    watcher = threading.Thread(target=look)
    watcher.start()
    engine = SparkEngine(spark_application, share_disk=False)
    result = experiment.launch(
        train, params={"x": 1, "signs": str(signs)}, engine=engine, resources=ALONE_ON_AN_EXECUTOR, quiet=True
    )
    watcher.join()
    folder = root / "experiments" / result.id
    assert result.trials[0].attempts == 2
    assert result.trials[0].value == 2.0, "the second attempt began with the checkpoint of the first"
    assert (folder / "trials/0000/logs/events").read_text() == "one\ntwo\n"
    assert (folder / "files/0000/model.bin").read_bytes() == b"m" * 3_000_000
    kept = {path.name for path in (folder / "trials/0000/checkpoints").iterdir()}
    assert "000003-step3" in kept
    assert "000001-step1" not in kept, "what is deleted there is deleted here"
    assert str(root) not in (folder / "trials/0000/stdout.log").read_text()


def work_until_measured(folder: str) -> float:
    data = bytearray(30_000_000)

    def spend() -> None:
        data[0] = sum(range(100_000)) % 256

    samples = "experiments/*/trials/0000/usage.jsonl"
    wait_until(lambda: any(Path(folder).glob(samples)), spend, "the driver has written a sample down")
    return 1.0


def test_what_a_trial_uses_on_an_executor_is_measured(spark_application: SparkContext) -> None:
    """Samples travel to the driver with the messages of the agent, so that no shared disk is needed."""
    engine = SparkEngine(spark_application, share_disk=False)
    root = str(Path(project.current().root).resolve())
    result = experiment.launch(work_until_measured, params={"folder": root}, engine=engine, quiet=True)
    usage = result.trials[0].usage
    assert usage
    assert usage.peak_memory_bytes is not None
    assert usage.peak_memory_bytes > 30_000_000
    assert usage.mean_cpus is not None
    assert usage.mean_cpus > 0
