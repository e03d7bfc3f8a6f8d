"""The index in PostgreSQL, on a real server: the contract of all indexes, and what a shared one adds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from cargobike import experiment
from cargobike.cli.app import app
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import TrialState
from cargobike.experiments.index.index import Index
from cargobike.experiments.index.journals import TABLES
from cargobike.experiments.index.opening import open_index
from cargobike.experiments.index.sql import SqlIndex
from cargobike.store.index import postgres as postgres_index
from cargobike.store.index.consent import allow
from cargobike.store.index.opening import project_key
from cargobike.store.index.postgres import PostgresDatabase, schema_of
from cargobike.testing.stores import IndexContract, JournalBuilder, assert_rows_equal_record
from support import programs
from support.postgres_server import PostgresServer

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    server = PostgresServer(Path(programs.require("postgres")).parent)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _named_by_a_variable(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_INDEX_URL", server.url)


def execute(url: str, *statements: str) -> list[object]:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            return [connection.execute(sa.text(one)) for one in statements]
    finally:
        engine.dispose()


class TestPostgresIndex(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        index = open_index(project)
        assert isinstance(index, SqlIndex)
        assert isinstance(index.database, PostgresDatabase)
        return index


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    return ProjectFolder(tmp_path / "project")


def test_projects_share_a_database_and_do_not_see_each_other(tmp_path: Path) -> None:
    one, two = ProjectFolder(tmp_path / "one"), ProjectFolder(tmp_path / "two")
    for place, value in ((one, 0.1), (two, 0.2)):
        journal = JournalBuilder(place, "20270101-000000-aaaa", name="the same id")
        journal.complete(value, lr=0.1)
        journal.end()
    with open_index(one) as first, open_index(two) as second:
        first.sync()
        second.sync()
        first.rebuild()
        assert [row.best_value for row in first.experiments()] == [0.1]
        assert [row.best_value for row in second.experiments()] == [0.2]
        assert first.trials("20270101-000000-aaaa")[0].value == 0.1
    (one.root / "moved").parent.rename(tmp_path / "elsewhere")
    assert project_key(ProjectFolder(tmp_path / "elsewhere")) != project_key(two)
    with open_index(ProjectFolder(tmp_path / "elsewhere")) as moved:
        assert [row.best_value for row in moved.experiments()] == [0.1], "a project is known by its key, not its path"


def test_many_sync_at_once_while_drivers_write(project: ProjectFolder) -> None:
    journals = [JournalBuilder(project, f"20270101-00000{i}-aaaa") for i in range(3)]
    done, begun = threading.Event(), threading.Barrier(5)

    def look() -> int:
        rounds = 0
        with open_index(project) as index:
            begun.wait(60)
            while not done.is_set() or not rounds:
                index.sync()
                rounds += 1
        return rounds

    with ThreadPoolExecutor(4) as pool:
        looking = [pool.submit(look) for _ in range(4)]
        begun.wait(60)
        for step in range(30):
            for journal in journals:
                journal.complete(step / 10, lr=step)
        for journal in journals:
            journal.end()
        done.set()
        assert all(one.result(60) > 0 for one in looking)
    with open_index(project) as index:
        index.sync()
        for journal in journals:
            assert_rows_equal_record(index, journal.folder)


def test_a_server_that_restarts_costs_nothing(server: PostgresServer, project: ProjectFolder) -> None:
    journal = JournalBuilder(project, "20270101-000000-aaaa")
    journal.complete(0.1, lr=0.1)
    with open_index(project) as index:
        index.sync()
        server.restart()
        journal.complete(0.2, lr=0.2)
        index.sync()
        assert_rows_equal_record(index, journal.folder)
        server.stop()
        journal.complete(0.3, lr=0.3)
        back = threading.Timer(0.5, server.start)
        back.start()
        index.sync()  # waits until it is there again
        back.join()
        assert_rows_equal_record(index, journal.folder)
    journal.end()


def test_a_search_does_not_notice_that_the_index_is_away(server: PostgresServer, tmp_path: Path) -> None:
    def train(x: int) -> int:
        return x

    with open_index(ProjectFolder(tmp_path)):
        server.stop()
    try:
        result = experiment.launch(train, {"x": list(range(20))}, quiet=True)
    finally:
        server.start()
    assert result.counts == {"completed": 20}
    listed = CliRunner().invoke(app, ["show", "last", "--json"])
    assert listed.exit_code == 0, listed.output
    assert '"trials_done": 20' in listed.stdout


def test_tables_that_are_lost_are_filled_again(server: PostgresServer, project: ProjectFolder) -> None:
    journal = JournalBuilder(project, "20270101-000000-aaaa")
    failed = journal.start(lr=0.1)
    journal.finish(failed, state=TrialState.FAILED, error="a zero \0 in a text")
    journal.end()
    with open_index(project) as index:
        index.sync()
        assert index.trials(journal.folder.id)[0].error == "a zero ␀ in a text"
        execute(server.url, f"DROP SCHEMA {schema_of(TABLES)} CASCADE")
        assert [row.id for row in index.experiments()] == [journal.folder.id]


def test_other_versions_keep_their_own_tables(server: PostgresServer, project: ProjectFolder) -> None:
    execute(server.url, "CREATE SCHEMA cargobike_1", "CREATE TABLE cargobike_1.experiments AS SELECT 1 AS id")
    with open_index(project) as index:
        index.rebuild()
    execute(server.url, "SELECT id FROM cargobike_1.experiments", "DROP SCHEMA cargobike_1 CASCADE")


def test_the_project_can_name_the_database_if_the_user_allows_it(
    server: PostgresServer, project: ProjectFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CARGOBIKE_INDEX_URL")
    project.root.mkdir()
    project.settings.write_text(f'[index]\nurl = "{server.url}"\n')
    with open_index(project) as index:
        assert isinstance(index, SqlIndex)
        assert not isinstance(index.database, PostgresDatabase), "not before the user has allowed it"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    allow(project, server.url)
    with open_index(project) as index:
        assert isinstance(index, SqlIndex)
        assert isinstance(index.database, PostgresDatabase)
    project.settings.write_text("[index\n")
    with pytest.raises(StoreError, match=r"settings.toml cannot be read"):
        open_index(project)


def test_tables_of_another_program_are_not_touched(server: PostgresServer, project: ProjectFolder) -> None:
    schema = schema_of(TABLES)
    execute(
        server.url,
        f"DROP SCHEMA IF EXISTS {schema} CASCADE",
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.trials (id INTEGER, verdict TEXT)",
        f"INSERT INTO {schema}.trials VALUES (1, 'guilty')",
    )
    try:
        with pytest.raises(StoreError, match=r"was not made by Cargobike: 'trials'.*Nothing was touched"):
            open_index(project)
        engine = sa.create_engine(server.url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect() as connection:
            assert sa.inspect(connection).get_table_names(schema) == ["trials"]
            assert connection.execute(sa.text(f"SELECT verdict FROM {schema}.trials")).scalar() == "guilty"
        engine.dispose()
    finally:
        execute(server.url, f"DROP SCHEMA {schema} CASCADE")


def test_tables_that_were_made_before_schemas_were_marked_are_used(
    server: PostgresServer, project: ProjectFolder
) -> None:
    journal = JournalBuilder(project, "20270101-000000-aaaa", name="digits")
    with open_index(project) as index:
        index.sync()
    execute(server.url, f"COMMENT ON SCHEMA {schema_of(TABLES)} IS NULL")
    with open_index(project) as index:
        assert [row.id for row in index.experiments()] == [journal.folder.id]


def test_what_cannot_be_used_is_said_without_the_password(
    project: ProjectFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(postgres_index, "PATIENCE_S", 0.2)
    monkeypatch.setenv("CARGOBIKE_INDEX_URL", f"postgresql://me:hunter2@/db?host={tmp_path}")
    with pytest.raises(StoreError, match="cannot be used") as caught:
        open_index(project)
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("CARGOBIKE_INDEX_URL", "mysql://me:hunter2@host/db")
    with pytest.raises(InvalidInputError, match="'mysql'") as refused:
        open_index(project)
    assert "hunter2" not in str(refused.value)
