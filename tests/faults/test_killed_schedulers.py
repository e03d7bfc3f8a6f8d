"""Real schedulers that are killed: nothing is lost, and nothing runs twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cargobike import pipelines, project
from cargobike.core.layout import ProjectFolder
from cargobike.pipelines.record import folder_of
from cargobike.pipelines.scheduling.policy.state import Firing
from cargobike.pipelines.scheduling.process.background import scheduler_at

PATIENCE_S = 90.0


class Schedulers:
    """Schedulers of one project, as processes."""

    def __init__(self, here: ProjectFolder) -> None:
        self.here = here
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "cargobike.pipelines.scheduling", str(self.here.root)]
        with open(self.here.root / "said.txt", "ab") as said:
            process = subprocess.Popen(command, stdout=said, stderr=said)
        self.processes.append(process)
        return process

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        (process,) = (process for process in self.processes if process.pid == pid)
        process.wait(PATIENCE_S)

    def at_work(self) -> int:
        at = scheduler_at(self.here)
        return at.pid if at is not None and at.is_alive else 0

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE_S)
        firings = pipelines.find_schedule("retrain").firings
        wait_until(
            lambda: all(
                count(self.here, firing.run, "run-ended") or not is_begun(self.here, firing) for firing in firings
            )
        )


@pytest.fixture
def schedulers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Schedulers]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flows.py").write_text("def retrain():\n    return 1\n")
    project.use(tmp_path / "project")
    made = Schedulers(project.prepare())
    yield made
    made.close()
    project.use(None)


def wait_until(is_so: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.002)


def is_begun(here: ProjectFolder, firing: Firing) -> bool:
    return bool(firing.run) and folder_of(here, firing.run).journal.is_file()


def count(here: ProjectFolder, run: str, fact: str) -> int:
    journal = folder_of(here, run).journal
    return journal.read_text().count(f'"{fact}"') if run and journal.is_file() else 0


def test_a_scheduler_killed_at_the_moment_it_fires_loses_nothing_and_doubles_nothing(schedulers: Schedulers) -> None:
    pipelines.schedule("flows.py:retrain", every="2s", overlap="queue")
    schedulers.start()
    wait_until(lambda: pipelines.find_schedule("retrain").state.active)
    schedulers.kill(schedulers.processes[0].pid)
    run = pipelines.find_schedule("retrain").firings[0].run
    schedulers.start()
    wait_until(lambda: [firing.outcome for firing in pipelines.find_schedule("retrain").firings[:1]] == ["completed"])
    pipelines.find_schedule("retrain").pause()
    assert pipelines.find_schedule("retrain").firings[0].run == run
    assert (count(schedulers.here, run, "run-started"), count(schedulers.here, run, "run-ended")) == (1, 1)


def test_two_schedulers_and_one_killed_after_the_other(schedulers: Schedulers) -> None:
    pipelines.schedule("flows.py:retrain", every="1s", overlap="queue", catch_up="all")
    for _ in range(2):
        schedulers.start()
    for _ in range(4):
        wait_until(schedulers.at_work)
        before = pipelines.find_schedule("retrain").state.fired
        wait_until(lambda before=before: pipelines.find_schedule("retrain").state.fired > before)  # type: ignore[misc]
        killed = schedulers.at_work()
        schedulers.kill(killed)
        wait_until(lambda killed=killed: schedulers.at_work() not in {0, killed})  # type: ignore[misc]
        schedulers.start()
    wait_until(lambda: pipelines.find_schedule("retrain").state.fired >= 12)
    wait_until(lambda: sum(bool(firing.outcome) for firing in pipelines.find_schedule("retrain").firings) >= 3)
    pipelines.find_schedule("retrain").pause()
    firings = pipelines.find_schedule("retrain").firings
    times = [firing.due for firing in firings if firing.due is not None]
    assert times == [times[0] + n for n in range(len(times))]
    wait_until(lambda: not pipelines.find_schedule("retrain").state.active)
    begun = [firing.run for firing in pipelines.find_schedule("retrain").firings if firing.outcome]
    assert len(begun) >= 3
    assert [count(schedulers.here, run, "run-started") for run in begun] == [1] * len(begun)
