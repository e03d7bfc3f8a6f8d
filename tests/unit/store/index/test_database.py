"""The database of an index, with the tables of a product that the store has never heard of."""

from __future__ import annotations

import logging
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
import sqlalchemy as sa

from cargobike.core.errors import StoreError
from cargobike.core.facts import Fact, Facts
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.kinds import Kind
from cargobike.experiments.index.opening import open_index
from cargobike.store.index.database import Database, sqlite_url
from cargobike.store.index.opening import open_database
from cargobike.store.index.tables import Reading, Row, Tables, Values, journal_columns
from cargobike.store.journal.journal import JournalReader, JournalWriter
from cargobike.testing.stores import JournalBuilder


class Planted(Fact, frozen=True, tag="planted"):
    tree: str = ""
    version: int = 1
    cargobike: str = ""


class Watered(Fact, frozen=True, tag="watered"):
    litres: float = 1.0


GARDEN: Facts[Planted | Watered, Planted] = Facts(Planted | Watered, first=Planted, version=1)
PLANTS = Kind(name="plant", folder="plants", id=re.compile("[a-z]+"), facts=GARDEN)
plants = sa.Table(
    "plants", sa.MetaData(), *journal_columns(), sa.Column("tree", sa.Text), sa.Column("litres", sa.Double)
)


class PlantReading(Reading):
    def __init__(self, folder: Path, row: Row | None) -> None:
        self.reader = JournalReader(folder / PLANTS.journal, GARDEN, 0 if row is None else row["read_bytes"])
        self.tree: str = "" if row is None else row["tree"]
        self.litres: float = 0.0 if row is None else row["litres"]

    def read_on(self) -> None:
        for fact in self.reader.read_new():
            if isinstance(fact, Planted):
                self.tree = fact.tree
            else:
                self.litres += fact.litres
        self.is_complete = True

    def values(self, problem: str) -> Values | None:
        return {"tree": self.tree, "litres": self.litres} if self.tree or problem else None


class GardenTables(Tables):
    product: ClassVar[str] = "garden"
    version: ClassVar[int] = 1
    kind: ClassVar[Kind] = PLANTS
    owners: ClassVar[Mapping[sa.Table, sa.Column[Any]]] = {plants: plants.c.id}

    def begin(self, connection: sa.Connection, folder: Path, row: Row | None, key: str) -> Reading:
        return PlantReading(folder, row)


class NextGardenTables(GardenTables):
    version: ClassVar[int] = 2


TABLES = GardenTables()


def write(project: ProjectFolder, name: str, *facts: Fact) -> None:
    with JournalWriter(project.root / "plants" / name / "journal.jsonl") as writer:
        writer.append(facts)


def listed(database: Database) -> dict[str, tuple[str, float]]:
    rows = database.rows(sa.select(plants).order_by(plants.c.id))
    return {row["id"]: (row["tree"], row["litres"]) for row in rows}


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    project = ProjectFolder(tmp_path)
    write(project, "pear", Planted(at=1.0, tree="Pyrus"), Watered(at=2.0, litres=2.0))
    write(project, "oak", Planted(at=1.0, tree="Quercus"))
    journal = JournalBuilder(project, "20270101-000000-aaaa", name="digits")
    journal.complete(0.5, lr=0.1)
    journal.end()
    return project


def test_journals_become_rows_and_are_read_on(project: ProjectFolder) -> None:
    with open_database(project, TABLES) as database:
        database.sync()
        assert listed(database) == {"oak": ("Quercus", 0.0), "pear": ("Pyrus", 2.0)}
        write(project, "pear", Watered(at=3.0, litres=0.5))
        shutil.rmtree(project.root / "plants" / "oak")
        database.sync()
        assert listed(database) == {"pear": ("Pyrus", 2.5)}
        database.rebuild()
        assert listed(database) == {"pear": ("Pyrus", 2.5)}


def test_a_damaged_journal_is_a_row_with_a_problem(project: ProjectFolder) -> None:
    journal = project.root / "plants" / "pear" / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole.replace(b"Pyrus", b"Malus"))
    with open_database(project, TABLES) as database:
        database.sync()
        problems = {row["id"]: row["problem"] for row in database.rows(sa.select(plants))}
        assert problems["oak"] == ""
        assert "line 1: damaged" in problems["pear"]
        journal.write_bytes(whole)
        database.sync()
        assert listed(database)["pear"] == ("Pyrus", 2.0)


def test_products_share_a_file_and_leave_each_other_alone(project: ProjectFolder) -> None:
    with open_index(project) as index, open_database(project, TABLES) as database:
        index.sync()
        database.sync()
        with open_database(project, NextGardenTables()) as newer:
            assert listed(newer) == {}, "tables of another version are made anew"
            newer.sync()
            assert len(listed(newer)) == 2
        assert [row.name for row in index.experiments()] == ["digits"]
        database.rebuild()
        assert [row.name for row in index.experiments()] == ["digits"]
    with sqlite3.connect(project.index) as connection:
        rows = connection.execute("SELECT product, version, tables FROM products ORDER BY product").fetchall()
    assert [row[0] for row in rows] == ["experiments", "garden"]
    assert rows[1] == ("garden", 2, "plants")


def test_a_file_that_one_product_makes_anew_is_completed_by_the_other(
    project: ProjectFolder, caplog: pytest.LogCaptureFixture
) -> None:
    with open_index(project) as index, open_database(project, TABLES) as database:
        index.sync()
        database.sync()
        project.index.write_bytes(b"this is no database, and long enough to see it" * 100)
        with caplog.at_level(logging.WARNING):
            assert [row.name for row in index.experiments()] == ["digits"]
            assert caplog.text.count("damaged") == 1
            assert len(listed(database)) == 2
            assert [row.name for row in index.experiments()] == ["digits"]
        assert caplog.text.count("damaged") == 1, "the second did not begin again from nothing"


def test_projects_share_a_database_and_do_not_see_each_other(project: ProjectFolder, tmp_path: Path) -> None:
    other = ProjectFolder(tmp_path / "other")
    write(other, "pear", Planted(at=1.0, tree="another"))
    url = f"sqlite:///{tmp_path}/shared.sqlite"
    with Database(project, TABLES, url, key="one") as first, Database(other, TABLES, url, key="two") as second:
        first.sync()
        second.sync()
        second.rebuild()
        mine = first.rows(sa.select(plants.c.tree).where(plants.c.project == "one", plants.c.id == "pear"))
        assert [row["tree"] for row in mine] == ["Pyrus"]
        assert len(first.rows(sa.select(plants))) == 3


def test_a_database_in_memory_serves_several_threads(tmp_path: Path) -> None:
    """As for a dashboard of a project that is read-only, or does not exist yet."""
    project = ProjectFolder(tmp_path / "later")
    with open_index(project) as index, ThreadPoolExecutor(8) as threads:
        for number in range(3):
            JournalBuilder(project, f"20270101-00000{number}-aaaa").complete(0.5)
            rounds = [threads.submit(index.sync) for _ in range(8)] + [threads.submit(index.names) for _ in range(8)]
            assert [each.exception() for each in rounds] == [None] * 16
        assert len(threads.submit(index.names).result()) == 3
    assert not project.index.exists()


def test_opening_a_file_again_keeps_the_locks_of_connections_to_it(project: ProjectFolder) -> None:
    with Database(project, TABLES, sqlite_url(project.index)) as first, first._engine.connect() as reading:
        reading.exec_driver_sql("SELECT count(*) FROM products")
        with Database(project, TABLES, sqlite_url(project.index)):
            pass
        write = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('CREATE TABLE other (x)'); c.close()"
        subprocess.run([sys.executable, "-c", write, str(project.index)], check=True, timeout=300)
        # The last connection to a file removes its log; that process must have noticed that it was not the last.
        assert project.index.with_name(f"{project.index.name}-wal").exists()


def test_another_file_copied_over_an_index_is_noticed(project: ProjectFolder, tmp_path: Path) -> None:
    with Database(project, TABLES, sqlite_url(project.index)) as index:
        with closing(sqlite3.connect(tmp_path / "other")) as other:
            other.execute("CREATE TABLE accounts (name TEXT)")
        for suffix in ("-wal", "-shm"):
            project.index.with_name(project.index.name + suffix).unlink(missing_ok=True)
        project.index.write_bytes((tmp_path / "other").read_bytes())
        with pytest.raises(StoreError, match="not an index of Cargobike"):
            index.sync()
    assert project.index.read_bytes() == (tmp_path / "other").read_bytes()
