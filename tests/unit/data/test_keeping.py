"""What a project keeps of tables: those with manifests, those of before with journals, and commands."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from cargobike import data
from cargobike.cli.app import app
from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.data.facts import TableRemoved, TableWritten
from cargobike.data.keeping import find_table, list_tables, remove_table
from cargobike.data.materialize import materialize
from cargobike.store.files.project import current
from cargobike.store.journal.journal import JournalWriter, read_journal

TABLE = pa.table({"x": list(range(10)), "name": [f"row {n}" for n in range(10)]})


@pytest.fixture
def project() -> ProjectFolder:
    return current()


@pytest.fixture
def table_id(project: ProjectFolder) -> str:
    return materialize(TABLE, project).folder.removeprefix("data/")


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["data", *words])
    assert result.exit_code == code, result.output
    return result


def write_as_before(project: ProjectFolder, table_id: str) -> None:
    """Write a table as it was done before tables had manifests: files and a journal in one folder."""
    folder = project.root / "data" / table_id
    folder.mkdir(parents=True)
    pq.write_table(TABLE, folder / "part-000000-0000.parquet")
    columns = {"x": "int64", "name": "string"}
    fact = TableWritten(at=1.8e9, id=table_id, source="pandas", columns=columns, files={"part-000000-0000.parquet": 10})
    with JournalWriter(folder / "journal.jsonl") as journal:
        journal.append([fact])


def test_a_table_given_to_an_experiment_says_what_was_written(project: ProjectFolder, table_id: str) -> None:
    table = data.open(table_id)
    assert (table.name, table.version, table.manifest.source) == (table_id, 1, "pyarrow")
    assert table.manifest.columns == {"x": "int64", "name": "string"}
    assert table.read().equals(TABLE)


def test_tables_of_before_are_listed_found_and_removed(project: ProjectFolder) -> None:
    write_as_before(project, "0123456789ab")
    (project.root / "data" / "of-my-own.npz").write_bytes(b"x")
    assert [one.id for one in list_tables(project)] == ["0123456789ab"]
    assert find_table(project, "012345").rows == 10
    remove_table(project, "0123456789ab")
    assert list_tables(project) == []
    removed = find_table(project, "last")
    assert removed.removed_at is not None
    assert removed.rows == 10
    assert [path.name for path in (project.root / "data" / "0123456789ab").iterdir()] == ["journal.jsonl"]
    facts = list(read_journal(project.root / "data" / "0123456789ab" / "journal.jsonl"))
    assert isinstance(facts[1], TableRemoved)


def test_tables_are_listed_found_and_removed(project: ProjectFolder, table_id: str) -> None:
    (project.root / "data" / "of-my-own.npz").write_bytes(b"x")
    assert [one.id for one in list_tables(project)] == [table_id]
    assert find_table(project, table_id[:6]).rows == 10
    remove_table(project, table_id)
    assert list_tables(project) == []
    removed = find_table(project, "last")
    assert removed.removed_at is not None
    assert removed.rows == 10
    assert [path.name for path in (project.root / "data" / table_id / "1").iterdir()] == ["manifest.json"]
    with pytest.raises(NotFoundError, match="There is no table 'zz'"):
        find_table(project, "zz")


def test_commands_list_show_and_remove(table_id: str) -> None:
    assert table_id in call("ls").stdout
    shown = json.loads(call("show", "last", "--json").stdout)
    assert (shown["id"], shown["rows"], shown["source"]) == (table_id, 10, "pyarrow")
    assert datetime.fromisoformat(shown["written_at"]).utcoffset() == timedelta(0)
    assert shown["removed_at"] is None
    assert "int64" in call("show", table_id).stdout
    assert json.loads(call("rm", table_id, "--yes", "--json").stdout) == {"removed": [table_id]}
    assert json.loads(call("ls", "--json").stdout) == []
    assert [one["id"] for one in json.loads(call("ls", "--all", "--json").stdout)] == [table_id]
    assert "There are no tables" in call("ls").stdout
    assert "There is no table 'zz'" in call("show", "zz", code=1).stderr


def test_a_project_that_does_not_exist_is_not_made_by_looking(tmp_path: Path) -> None:
    assert list_tables(ProjectFolder(tmp_path / "none")) == []
    assert not (tmp_path / "none").exists()
