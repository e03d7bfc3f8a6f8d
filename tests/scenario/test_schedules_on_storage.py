"""Schedules of a project on S3 and HDFS: kept there, and set off once by two schedulers."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike import pipelines, project
from cargobike.pipelines.scheduling.keeping.book import Book
from cargobike.pipelines.scheduling.keeping.lease import Lease
from cargobike.pipelines.scheduling.process.run_processes import RunProcesses
from cargobike.pipelines.scheduling.process.scheduler import Scheduler
from cargobike.store.files.storages import storage_of
from support.virtual_schedulers import LooksAtOnce, SetClock, World


def test_two_schedulers_share_a_project_on_the_storage(project_there: str, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text("def retrain():\n    return 1\n")
    made = pipelines.schedule(f"{tmp_path}/flows.py:retrain", every="60s")
    world = World(made.state.plan.start)
    storage = storage_of(project.current())

    def scheduler(process: str) -> Scheduler:
        return Scheduler(
            book=Book(storage),
            lease=Lease(storage, process),
            runs=world.runs,
            looker=LooksAtOnce(world),
            clock=SetClock(world),
            bell_s=10.0,
        )

    first, second = scheduler("1 a 1 a"), scheduler("1 b 1 b")
    world.pass_time(61, first, second, step_s=20.5)
    assert len(world.runs.ids) == 1
    world.runs.end(world.runs.ids[0])
    world.pass_time(3, first, second, step_s=1.5)
    world.pass_time(35, second, step_s=11)  # the first is gone without a word
    world.pass_time(61, second, step_s=20.5)
    assert len(world.runs.ids) == 2
    assert [firing.outcome for firing in pipelines.find_schedule("retrain").firings] == ["completed", ""]
    pipelines.find_schedule("retrain").remove()
    world.pass_time(120, second, step_s=30)
    assert len(world.runs.ids) == 2
    assert pipelines.schedules() == []


def test_a_run_of_a_project_on_the_storage_is_seen_by_a_scheduler_of_another_host(
    project_there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flows.py").write_text("def retrain():\n    return 1\n")
    made = pipelines.schedule(f"{tmp_path}/flows.py:retrain", every="1h")
    world = World(made.state.plan.start + 3700)

    def scheduler(process: str) -> tuple[Scheduler, RunProcesses]:
        here, clock = project.current(), SetClock(world)
        storage, runs = storage_of(here), RunProcesses(project.current(), clock)
        looker = LooksAtOnce(world)
        lease = Lease(storage, process)
        return Scheduler(book=Book(storage), lease=lease, runs=runs, looker=looker, clock=clock), runs

    first, runs = scheduler("1 a 1 a")
    first.turn()
    runs.wait(60)
    first.end()  # before it has noticed that the run is over
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "elsewhere"))
    second, others = scheduler("1 b 1 b")
    world.passed += 60
    second.turn()
    assert [firing.outcome for firing in pipelines.find_schedule("retrain").firings] == ["completed"]
    others.wait(60)
