from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import ExperimentState, TrialState
from cargobike.experiments.index import journals
from cargobike.experiments.index.journals import TABLES
from cargobike.experiments.index.opening import open_index
from cargobike.experiments.index.sql import SqlIndex
from cargobike.store.index import database as database_module
from cargobike.store.index.database import Database
from cargobike.testing.stores import JournalBuilder, assert_rows_equal_record

SYNC = """
import sys
from pathlib import Path
from zlib import crc32
from cargobike.experiments.index.opening import open_index
from cargobike.core.layout import ProjectFolder

sys.stdin.readline()
with open_index(ProjectFolder(Path(sys.argv[1]))) as index:
    for _ in range(5):
        index.sync()
    print(len(index.experiments()), sum(row.trials_done for row in index.experiments()))
"""


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    project = ProjectFolder(tmp_path)
    project.experiments.mkdir()
    return project


def fill(project: ProjectFolder, experiments: int, trials: int) -> None:
    for number in range(experiments):
        journal = JournalBuilder(project, f"20270101-{number:06d}-aaaa", name=f"e{number}")
        for trial in range(trials):
            journal.complete(trial / 10, lr=trial)
        journal.end()


def test_two_processes_can_sync_at_once(project: ProjectFolder) -> None:
    fill(project, experiments=30, trials=10)
    command = [sys.executable, "-c", SYNC, str(project.root)]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [child.communicate("go\n", timeout=300)[0] for child in children]
    assert answers == ["30 300\n"] * 3


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_rows_equal_the_fold_however_the_reading_is_cut(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    project = ProjectFolder(tmp_path_factory.mktemp("cut"))
    journal = JournalBuilder(project, "20270101-000000-aaaa")
    with SqlIndex(Database(project, TABLES, "sqlite://")) as index:
        running = list[int]()
        for action in data.draw(st.lists(st.sampled_from(["start", "report", "end", "fail", "sync"]))):
            if action == "start":
                running.append(journal.start(lr=0.1))
            elif action == "sync":
                index.sync()
            elif running:
                number = data.draw(st.sampled_from(running))
                if action == "report":
                    value = data.draw(st.floats())
                    journal.report(number, journal.trials, score=value)
                else:
                    running.remove(number)
                    value = data.draw(st.floats(allow_nan=False))
                    state = TrialState.COMPLETED if action == "end" else TrialState.FAILED
                    journal.finish(number, value if action == "end" else None, state)
        journal.let_go()
        index.sync()
        assert_rows_equal_record(index, journal.folder)


def test_a_long_journal_is_read_in_several_bites(project: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(project, experiments=3, trials=20)
    monkeypatch.setattr(journals, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr(database_module, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr("cargobike.store.journal.lines.BLOCK_BYTES", 700)
    with open_index(project) as index:
        index.sync()
        for row in index.experiments():
            assert_rows_equal_record(index, project.experiment(row.id))


@pytest.mark.parametrize("damage", ["garbage", "middle", "empty", "no tables"])
def test_a_damaged_index_is_made_anew(project: ProjectFolder, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    fill(project, experiments=2, trials=30)
    with open_index(project) as index:
        index.sync()
        expected = index.experiments()
    if damage == "garbage":
        project.index.write_bytes(b"this is no database, and long enough to see it" * 100)
    elif damage == "middle":
        content = bytearray(project.index.read_bytes())
        content[4096:] = b"\xa5" * (len(content) - 4096)
        project.index.write_bytes(bytes(content))
    elif damage == "empty":
        project.index.write_bytes(b"")
    else:
        with sqlite3.connect(project.index) as connection:
            connection.execute("DROP TABLE trials")
    with caplog.at_level(logging.WARNING), open_index(project) as index:
        index.sync()
        assert index.experiments() == expected
        assert len(index.trials(expected[0].id)) == 30
    assert ("damaged" in caplog.text) is (damage != "empty")


def test_an_index_of_another_version_is_made_anew(project: ProjectFolder) -> None:
    fill(project, experiments=1, trials=1)
    with open_index(project) as index:
        index.sync()
    with sqlite3.connect(project.index) as connection:
        connection.execute("UPDATE products SET version = 99, tables = tables || ' later'")
        connection.execute("ALTER TABLE experiments RENAME COLUMN name TO title")
        connection.execute("CREATE TABLE later (x INTEGER)")
    with open_index(project) as index:
        index.sync()
        assert [row.name for row in index.experiments()] == ["e0"]
    with sqlite3.connect(project.index) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    assert "later" not in tables


def test_a_file_that_knows_no_products_yet_is_made_anew(project: ProjectFolder) -> None:
    fill(project, experiments=1, trials=1)
    with sqlite3.connect(project.index) as connection:
        connection.execute("CREATE TABLE meta (name VARCHAR(40) PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO meta VALUES ('schema_version', '5')")
        connection.execute("CREATE TABLE experiments (project VARCHAR(40), id VARCHAR(80))")
        connection.execute("INSERT INTO experiments VALUES ('', 'stale')")
    with open_index(project) as index:
        index.sync()
        assert [row.name for row in index.experiments()] == ["e0"]
    with sqlite3.connect(project.index) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    assert tables == {"products", "experiments", "trials"}


def test_a_busy_index_is_waited_for(project: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_S", 0.1)
    fill(project, experiments=1, trials=1)
    with open_index(project) as index:
        blocker = sqlite3.connect(project.index, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            index.sync()
        assert index.experiments() == []
        blocker.execute("ROLLBACK")
        blocker.close()
        index.sync()
        assert len(index.experiments()) == 1


def test_nothing_is_written_where_nothing_changed(project: ProjectFolder) -> None:
    fill(project, experiments=2, trials=2)
    with open_index(project) as index:
        index.sync()
        blocker = sqlite3.connect(project.index, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        index.sync()
        blocker.execute("ROLLBACK")
        blocker.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_project_that_is_read_only_can_be_read(project: ProjectFolder) -> None:
    fill(project, experiments=1, trials=1)
    project.root.chmod(0o555)
    try:
        with open_index(project) as index:
            index.sync()
            assert len(index.experiments()) == 1
        assert not project.index.exists()
    finally:
        project.root.chmod(0o755)


def test_a_journal_of_a_newer_version_is_a_row_with_a_problem(project: ProjectFolder) -> None:
    fill(project, experiments=1, trials=0)
    strange = project.experiment("20280101-000000-zzzz")
    strange.root.mkdir()
    strange.journal.write_bytes(b'{"no":"fact","crc":"00000000"}\n' + b"{}\n")
    JournalBuilder(project, "20270202-000000-aaaa", name="later").let_go()
    newer = project.experiment("20270202-000000-aaaa").journal
    body = newer.read_bytes().splitlines()[0].split(b',"crc"')[0].replace(b'"version":3', b'"version":9')
    newer.write_bytes(b'%b,"crc":"%08x"}\n' % (body, crc32(body)))
    with open_index(project) as index:
        index.sync()
        row = index.experiment("20270202-000000-aaaa")
        assert "newer Cargobike" in row.problem
        assert row.state is ExperimentState.LOST
        assert [one.id for one in index.experiments(sort="name")].count(strange.id) == 0
