"""The trials that are measured: in a file that imports next to nothing, for workers load what it imports beforehand."""

from __future__ import annotations

import os
import time
from pathlib import Path

from cargobike import trial

TRIAL_S = 0.5
SLOWNESS = 4


def trial_s() -> float:
    return TRIAL_S * float(os.environ.get("SLOWNESS", "1"))


def one_trial(i: int) -> tuple[str, float]:
    """A trial for a plain map: says where it ran and for how long it was busy."""
    time.sleep(trial_s())
    return os.environ.get("SPARK_LOCAL_IP", ""), trial_s()


def train(i: int) -> float:
    """The same for Cargobike; returns for how long it was busy."""
    time.sleep(trial_s())
    return trial_s()


def train_locally(i: int, folder: str) -> float:
    """The same on this machine without Spark, where the first worker that asks is the slow one."""
    agent = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    try:
        (Path(folder) / "slow").symlink_to(agent)
    except FileExistsError:
        pass
    seconds = TRIAL_S * (SLOWNESS if os.readlink(Path(folder) / "slow") == agent else 1)
    time.sleep(seconds)
    return seconds


def executor_above() -> int:
    pid = os.getpid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def hang_once(i: int) -> float:
    if i == 0 and trial.attempt == 1:
        trial.report(step=0, executor=float(executor_above()))
        time.sleep(600)
    time.sleep(0.2)
    return float(i)
