"""A process beside the driver feeds the index, and nothing of the search depends on it."""

from __future__ import annotations

import io
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cargobike.core.asked import Search
from cargobike.core.facts import Fact, TrialEnded
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.experiments.driving.feeding import IndexFeeder
from cargobike.experiments.index import feeding
from cargobike.experiments.index.opening import open_index
from cargobike.store.index.light import LightDatabase
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact
from cargobike.testing.stores import JournalBuilder, assert_rows_equal_record

ID = "20270101-000000-aaaa"
DEADLINE_S = 60.0
SOME: list[Fact] = [TrialEnded(at=1.0, trial=0, state="completed", value=1.0)] * 3

DRIVER = """
import sys, time
from pathlib import Path
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.driving.feeding import IndexFeeder

feeder = IndexFeeder(ExperimentFolder(Path(sys.argv[1])), long_s=0, many=1)
feeder.on_facts([None, None])
print(feeder._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    return ProjectFolder(tmp_path / "project")


@pytest.fixture
def no_input(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give this process a standard input that has ended, as that of a feeder whose driver is done."""
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield


def searched(project: ProjectFolder, trials: int = 30) -> JournalBuilder:
    journal = JournalBuilder(project, ID, name="long")
    for trial in range(trials):
        journal.complete(trial / 10, lr=trial)
    return journal


def read_bytes(project: ProjectFolder) -> int:
    """Return how much of the journal is in the index, without bringing it up to date."""
    if not project.index.exists():
        return 0
    with closing(sqlite3.connect(f"file:{project.index}?mode=ro", uri=True)) as connection:
        try:
            rows = connection.execute("SELECT read_bytes FROM experiments").fetchall()
        except sqlite3.OperationalError:
            return 0  # its tables are being made
    return int(rows[0][0]) if rows else 0


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < give_up_at, f"not within {DEADLINE_S:g} s: {what}"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_the_index_follows_the_journal_while_the_driver_runs(project: ProjectFolder) -> None:
    journal = searched(project)
    folder = project.experiment(ID)
    feeder = IndexFeeder(folder, long_s=0, many=1)
    feeder.on_facts(SOME)
    try:
        wait_until(lambda: read_bytes(project) == folder.journal.stat().st_size, "the first lines are in the index")
        journal.complete(99.0, lr=1)
        wait_until(lambda: read_bytes(project) == folder.journal.stat().st_size, "a later line is in the index")
    finally:
        feeder.close()
    with open_index(project) as index:
        assert index.experiment(ID).best_value == 99.0
        index.sync()
        assert_rows_equal_record(index, folder)


@pytest.mark.usefixtures("no_input")
def test_after_a_search_nothing_is_left_for_the_first_reader(
    project: ProjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched(project).end()
    feeding.feed(project.experiment(ID))
    monkeypatch.setattr(LightDatabase, "_whole", lambda _: pytest.fail("something was left to be written"))
    with open_index(project) as index:
        index.sync()
        assert index.experiment(ID).trials_done == 30
        assert [one.number for one in index.trials(ID, sort="best", limit=3)] == [29, 28, 27]


@pytest.mark.usefixtures("no_input")
def test_what_a_killed_feeder_left_undone_is_read_by_the_next_reader(project: ProjectFolder) -> None:
    journal = searched(project)
    feeding.feed(project.experiment(ID))
    half = read_bytes(project)
    journal.complete(5.0, lr=1)
    journal.end()
    assert 0 < half < project.experiment(ID).journal.stat().st_size
    with open_index(project) as index:
        index.sync()
        assert_rows_equal_record(index, project.experiment(ID))


@pytest.mark.usefixtures("no_input")
def test_a_damaged_index_is_made_anew(project: ProjectFolder) -> None:
    searched(project).end()
    feeding.feed(project.experiment(ID))
    data = bytearray(project.index.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    project.index.write_bytes(data)
    with open_index(project) as index:
        index.sync()
        assert_rows_equal_record(index, project.experiment(ID))


@pytest.mark.usefixtures("no_input")
def test_the_database_of_a_team_is_left_to_the_people_who_ask(
    project: ProjectFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched(project).end()
    monkeypatch.setenv("CARGOBIKE_INDEX_URL", f"sqlite:///{tmp_path / 'team.sqlite'}")
    feeding.feed(project.experiment(ID))
    assert not (tmp_path / "team.sqlite").exists()
    assert not project.index.exists()


@pytest.mark.usefixtures("no_input")
def test_with_repeats_nothing_is_fed_since_all_would_be_read_each_time(project: ProjectFolder) -> None:
    with JournalWriter(project.experiment(ID).journal) as writer:
        writer.append([first_fact(id=ID).asking(search=Search(repeats=3, num_trials=4))])
    feeding.feed(project.experiment(ID))
    assert read_bytes(project) == 0


def test_a_feeder_ends_when_its_driver_is_killed(project: ProjectFolder) -> None:
    searched(project)
    root = project.experiment(ID).root
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(root)], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        feeder = int(driver.stdout.readline())
        assert is_alive(feeder)
        os.kill(driver.pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(feeder), "the feeder ends with its driver")


def test_a_search_goes_on_if_no_feeder_can_be_started(project: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = io.StringIO()

    def refuse(*_: object, **__: object) -> None:
        tries.write("x")
        raise OSError(11, "no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    feeder = IndexFeeder(project.experiment(ID), long_s=0, many=1)
    feeder.on_facts(SOME)
    feeder.on_facts(SOME)
    feeder.close()
    assert tries.getvalue() == "x"


def test_a_search_ends_even_if_its_feeder_hangs_on_a_disk(
    project: ProjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = list[str]()

    class Hanging:
        stdin = io.BytesIO()

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def poll(self) -> None:
            return None

        def kill(self) -> None:
            killed.append("killed")

    monkeypatch.setattr(subprocess, "Popen", Hanging)
    feeder = IndexFeeder(project.experiment(ID), long_s=0, many=1)
    feeder.on_facts(SOME)
    feeder.close()
    assert killed == ["killed"]


def test_a_short_search_gets_no_feeder(project: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    folder: ExperimentFolder = project.experiment(ID)
    for feeder in (IndexFeeder(folder, long_s=0), IndexFeeder(folder, many=1)):  # few facts; many, but at once
        feeder.on_facts(SOME)
        feeder.close()
