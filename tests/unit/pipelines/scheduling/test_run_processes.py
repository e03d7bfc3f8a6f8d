"""Runs of schedules as real processes, set off in virtual time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cargobike import pipelines, project
from cargobike.core.layout import ProjectFolder
from cargobike.pipelines.record import folder_of, read_run
from cargobike.pipelines.scheduling.keeping.book import Book
from cargobike.pipelines.scheduling.keeping.lease import Lease
from cargobike.pipelines.scheduling.policy.state import Firing
from cargobike.pipelines.scheduling.process.run_processes import RunProcesses, fitting
from cargobike.pipelines.scheduling.process.scheduler import Scheduler
from cargobike.store.files.storages import storage_of
from support.virtual_schedulers import LooksAtOnce, SetClock, World

SOURCE = """
import os, time
from cargobike import pipelines

def retrain(gate=""):
    while gate and not os.path.exists(gate):
        time.sleep(0.01)
    return pipelines.cause()["due"]
"""
PATIENCE_S = 60.0


class Place:
    """A project with real runs, and a clock that is set by hand."""

    def __init__(self, here: ProjectFolder) -> None:
        self.here = here
        self.world = World(time.time())
        self.said: list[str] = []
        self.runs: list[RunProcesses] = []

    def scheduler(self) -> Scheduler:
        storage, clock = storage_of(self.here), SetClock(self.world)
        self.runs.append(RunProcesses(self.here, clock))
        return Scheduler(
            book=Book(storage),
            lease=Lease(storage),
            runs=self.runs[-1],
            looker=LooksAtOnce(self.world),
            clock=clock,
            say=lambda name, words: self.said.append(words),
        )

    def turn_until(self, scheduler: Scheduler, is_so: Callable[[list[Firing]], bool]) -> list[Firing]:
        give_up_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up_at:
            self.world.passed += 2.0
            scheduler.turn()
            firings = pipelines.find_schedule("retrain").firings
            if is_so(firings):
                return firings
            time.sleep(0.02)
        raise AssertionError(f"it is not so: {firings}")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flows.py").write_text(SOURCE)
    project.use(tmp_path / "project")
    place = Place(project.prepare())
    yield place
    for runs in place.runs:
        runs.wait(PATIENCE_S)
    project.use(None)


def are_over(firings: list[Firing]) -> bool:
    return bool(firings) and all(firing.outcome for firing in firings)


def test_a_run_is_a_process_of_its_own_that_knows_its_cause(place: Place) -> None:
    pipelines.schedule("flows.py:retrain", every="1h")
    scheduler = place.scheduler()
    place.world.at += 3700
    (firing,) = place.turn_until(scheduler, are_over)
    assert firing.outcome == "completed"
    record = read_run(folder_of(place.here, firing.run))
    assert record.started.cause == firing.cause
    assert pipelines.get(firing.run).result == firing.cause["due"]


def test_the_next_scheduler_finds_a_run_that_is_at_work_and_overlap_holds(place: Place, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    pipelines.schedule("flows.py:retrain", every="1h", gate=str(gate))
    place.world.at += 3700
    first = place.scheduler()
    place.turn_until(first, bool)
    run = pipelines.find_schedule("retrain").firings[0].run
    folder = folder_of(place.here, run)
    give_up_at = time.monotonic() + PATIENCE_S
    while not folder.journal.is_file() and time.monotonic() < give_up_at:
        time.sleep(0.02)
    first.end()
    second = place.scheduler()
    place.world.at += 3600
    firings = place.turn_until(second, lambda firings: len(firings) == 2)
    assert [firing.outcome for firing in firings] == ["", "skipped"]
    gate.touch()
    firings = place.turn_until(second, are_over)
    assert [firing.outcome for firing in firings] == ["completed", "skipped"]
    assert place.said.count(f"{run} started") == 1


def test_what_cannot_begin_is_over_with_its_reason(place: Place, tmp_path: Path) -> None:
    pipelines.schedule("flows.py:retrain", every="1h")
    scheduler = place.scheduler()
    (tmp_path / "flows.py").write_text("import nothing_of_that_name\n")
    place.world.at += 3700
    (firing,) = place.turn_until(scheduler, are_over)
    assert firing.outcome == "not started"
    assert "nothing_of_that_name" in firing.note
    (tmp_path / "flows.py").unlink()
    place.world.at += 3600
    *_, firing = place.turn_until(scheduler, lambda firings: len(firings) == 2 and are_over(firings))
    assert firing.outcome == "not started"
    assert f"there is no file {tmp_path}/flows.py here; it was scheduled on" in firing.note


def test_a_cause_that_is_too_long_for_a_process_is_cut() -> None:
    files = [f"s3://bucket/{'x' * 200}/{n}.parquet" for n in range(1000)]
    cut = fitting({"files": files, "count": 1000, "kind": "arrived"})
    assert (cut["count"], cut["kind"], cut["is_cut"]) == (1000, "arrived", True)
    assert cut["files"] == files[:250]
    assert fitting(cut) == cut
