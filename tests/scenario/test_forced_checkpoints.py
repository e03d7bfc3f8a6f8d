"""Checkpoints of trials are forced to disk beside the training, and no trial ends before that is done."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cargobike import experiment, trial
from cargobike.experiments.trial.checkpoints.folder import list_folders


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
def test_no_trial_ends_before_its_checkpoint_is_on_disk(tmp_path: Path, isolation: Any) -> None:
    forced = tmp_path / "forced"
    original = os.fsync

    def train(x: int) -> float:
        def slow_fsync(fd: Any) -> None:
            is_beside = threading.current_thread() is not threading.main_thread()
            time.sleep(0.1)
            original(fd)
            with forced.open("a") as file:
                file.write(f"{x} {is_beside}\n")

        os.fsync = slow_fsync
        trial.checkpoint.load()
        time.sleep(1.1)  # after a second without any, a checkpoint is forced
        trial.checkpoint.save("of an earlier epoch")
        trial.checkpoint.save("newest")
        if x == 1:
            raise ValueError("a mistake")
        return x

    result = experiment.launch(train, {"x": [0, 1, 2]}, workers=1, isolation=isolation, quiet=True)
    assert [str(ended.state) for ended in result.trials] == ["completed", "failed", "completed"]
    lines = forced.read_text().splitlines()
    for number in range(3):
        # Both files, their folder, that of all checkpoints, and at least one that was made on the way there.
        assert lines.count(f"{number} True") >= 5
    assert not any("False" in line for line in lines)
    for number in range(3):
        root = result.folder / "trials" / f"{number:04d}" / "checkpoints"
        assert len(list_folders(root)) == 2, "the one that was forced, and the newest"


def test_with_durability_power_each_is_on_disk_when_save_returns(tmp_path: Path) -> None:
    def train(x: int) -> float:
        forced: list[int] = []
        original, os.fsync = os.fsync, forced.append  # type: ignore[assignment]
        try:
            counts = []
            for epoch in range(3):
                trial.checkpoint.save(epoch)
                counts.append(len(forced))
        finally:
            os.fsync = original
        assert 0 < counts[0] < counts[1] < counts[2]
        return float(threading.active_count())

    result = experiment.launch(train, {"x": [0]}, workers=1, durability="power", quiet=True)
    assert [ended.value for ended in result.trials] == [1.0]
