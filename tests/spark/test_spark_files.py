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
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import Resources
from cargobike.engines.spark.engine import SparkEngine
from cargobike.experiments.driving.file_server import ServedFiles
from cargobike.testing.reception import wait_until
from cargobike.workers.files.requests import Get, Listing, Put, Settle

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


@pytest.fixture
def served(tmp_path: Path) -> ServedFiles:
    folder = ProjectFolder(tmp_path)
    for name in ("mine", "other"):
        (folder.experiment(name).root / "trials").mkdir(parents=True)
    (tmp_path / "index.sqlite").write_text("secret")
    (tmp_path / "experiments/mine/trials/out").symlink_to("/tmp")
    return ServedFiles(folder, folder.experiment("mine"))


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "index.sqlite",
        "experiments/mine/journal.jsonl",
        "experiments/other/trials/x",
        "experiments/mine/trials/../../../index.sqlite",
        "experiments/mine/trials/out/x",
    ],
)
def test_no_worker_gets_at_other_files(served: ServedFiles, path: str) -> None:
    for request in (Put(1, path, data=b"x"), Get(1, path), Listing(1, path), Settle(1, path, "x")):
        with pytest.raises(ValueError, match=r"not among the files|leads out"):
            served.answer(request)
    with pytest.raises(ValueError, match=r"not among the files|leads out"):
        served.answer(Settle(1, "experiments/mine/trials/.saving.0.x", "../../../../x"))


def test_requests_may_be_repeated(served: ServedFiles, tmp_path: Path) -> None:
    building = "experiments/mine/trials/0000/checkpoints/.saving.0.a"
    for _ in range(2):
        served.answer(Put(1, f"{building}/state.bin", data=b"abc"))
        served.answer(Put(2, f"{building}/state.bin", offset=3, data=b"def"))
    for _ in range(2):
        served.answer(Settle(3, building, "000001-step1"))
    found = tmp_path / "experiments/mine/trials/0000/checkpoints"
    assert (found / "000001-step1/state.bin").read_bytes() == b"abcdef"
    served.answer(Put(4, f"{building}/state.bin", data=b"new"))
    served.answer(Settle(5, building, "000001-step1", alone=False))
    assert sorted(path.name for path in found.iterdir()) == ["000001-step1", "000002-step1"]
