"""Where nothing is to be written, the index answers without SQLAlchemy; where something is, as always."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.opening import open_index
from cargobike.store.files.locking import DriverLock
from cargobike.store.history.annotations import annotate
from cargobike.testing.stores import JournalBuilder

ID = "20270101-000000-aaaa"
ASK = """
import json, sys
from pathlib import Path
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.opening import open_index

with open_index(ProjectFolder(Path(sys.argv[1]))) as index:
    index.sync()
    trials = [row.trials for row in index.experiments()]
    best = [one.number for one in index.trials(index.resolve("last"), sort="best", limit=2)]
print(json.dumps([trials, best, "sqlalchemy" in sys.modules]))
"""


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    return ProjectFolder(tmp_path)


def ask(project: ProjectFolder) -> list[object]:
    """Return the trials of each experiment, the two best of the last, and whether SQLAlchemy was loaded for that."""
    command = [sys.executable, "-c", ASK, str(project.root)]
    answer: list[object] = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    return answer


def searched(project: ProjectFolder) -> JournalBuilder:
    journal = JournalBuilder(project, ID)
    for trial in range(3):
        journal.complete(trial / 10, lr=trial)
    return journal


def test_an_index_that_is_up_to_date_answers_without_sqlalchemy(project: ProjectFolder) -> None:
    journal = searched(project)
    journal.end()
    assert ask(project) == [[3], [2, 1], True]
    assert ask(project) == [[3], [2, 1], False]
    JournalBuilder(project, "20270202-000000-bbbb").complete(7.0, lr=1)
    assert ask(project) == [[1, 3], [0], True]


def test_a_dead_driver_a_tag_and_a_deleted_experiment_are_noticed(project: ProjectFolder) -> None:
    searched(project)
    with open_index(project) as index:
        with DriverLock(project.experiment(ID)):
            index.sync()
            assert index.experiment(ID).state.value == "running"
        index.sync()
        assert index.experiment(ID).state.value == "lost"
        annotate(project.experiment(ID), add=["good"])
        index.sync()
        assert index.experiment(ID).tags == ("good",)
        shutil.rmtree(project.experiment(ID).root)
        index.sync()
        assert index.experiments() == []


def test_tables_of_another_version_are_made_anew(project: ProjectFolder) -> None:
    searched(project).end()
    with open_index(project) as index:
        index.sync()
    with closing(sqlite3.connect(project.index)) as connection:
        connection.execute("UPDATE products SET version = 1")
        connection.execute("UPDATE experiments SET completed = 77")
        connection.commit()
    with open_index(project) as index:
        index.sync()
        assert index.experiment(ID).trials == 3


def test_a_file_that_vanishes_or_is_damaged_under_an_open_index_is_made_anew(project: ProjectFolder) -> None:
    searched(project).end()

    def damage() -> None:
        data = project.index.read_bytes()
        project.index.write_bytes(data[:100] + b"\xff" * (len(data) - 100))

    with open_index(project) as index:
        index.sync()
        for spoil in (project.index.unlink, damage):
            spoil()
            index.sync()
            assert index.experiment(ID).trials == 3


def test_the_database_of_another_program_is_not_touched(project: ProjectFolder) -> None:
    searched(project).end()
    with closing(sqlite3.connect(project.index)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.commit()
    before = project.index.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_index(project)
    assert project.index.read_bytes() == before
