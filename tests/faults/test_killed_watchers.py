"""A watcher that is killed for real, again and again, while its log is written and merged."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from cargobike import monitoring
from cargobike.core.errors import WaitError
from cargobike.core.signatures import Field, Signature
from cargobike.monitoring.running.keeping import Keeper
from cargobike.serving.inference_log import upkeep
from cargobike.serving.inference_log.places import log_folder
from cargobike.serving.inference_log.upkeep import tidy
from cargobike.store.files import project as projects
from cargobike.store.files.storages import open_storage
from support.logged_requests import logging_to
from support.watched_rows import usual

SIGNATURE = Signature((Field("age", "FP64"), Field("town", "BYTES")), (Field("old", "INT64"),))
WINDOW, ROWS, KILLS = 25, 1000, 4


def write_and_merge(project: Path, over: threading.Event) -> None:
    """Log requests a millisecond after each other, in many small files, and merge these all the time."""
    features, start = usual(ROWS, seed=5), time.time()
    for first in range(0, ROWS, 20):
        with logging_to(project, {1: SIGNATURE}) as log:
            for number in range(first, first + 20):
                row = {"age": float(features["age"][number]), "town": str(features["town"][number])}
                log.take(f"r{number}", start + number / 1000, 0.002, 1, 200, [row], [1])
        if first % 60 == 0:
            tidy(open_storage(project), log_folder("digits"), whole=True)
        over.wait(0.15)


@pytest.mark.slow
def test_no_kill_loses_or_doubles_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "GRACE_S", -1.0)
    seed = int(time.time())
    print(f"seed {seed}")
    chance, over, project = random.Random(seed), threading.Event(), tmp_path / "project"
    projects.use(project)
    with logging_to(project, {1: SIGNATURE}):
        pass
    (project / log_folder("digits")).mkdir(parents=True, exist_ok=True)
    (project / log_folder("digits") / "mark").touch()
    writer = threading.Thread(target=write_and_merge, args=(project, over))
    writer.start()
    try:
        monitor = monitoring.watch("digits", usual(1000), window=WINDOW, detach=True)
        killed = 0
        for _ in range(KILLS):
            try:
                monitor.wait(chance.uniform(0.2, 1.5), windows=10**6)
            except WaitError:
                os.kill(monitor.record().pid, signal.SIGKILL)
                killed += 1
            while monitor.status().state == "watching":
                time.sleep(0.01)
            monitor.start(detach=True)
        writer.join()
        record = monitor.wait(60, windows=ROWS // WINDOW, alarms=0)
        monitor.stop()
    finally:
        over.set()
        writer.join()
        projects.use(None)
    assert killed == KILLS
    assert [window.number for window in record.windows] == [*range(1, ROWS // WINDOW + 1)]
    assert Counter(window.rows for window in record.windows) == {WINDOW: ROWS // WINDOW}
    keeper = Keeper(monitor.folder)
    keeper.close()
    assert (keeper.kept.watching.rows, keeper.kept.watching.windows.open) == (ROWS, [])
