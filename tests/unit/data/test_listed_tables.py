"""The tables of a project, with and without journals."""

from __future__ import annotations

import os
from pathlib import Path

from cargobike.core.layout import ProjectFolder
from cargobike.data.facts import TableRemoved, TableWritten
from cargobike.data.keeping import list_tables
from cargobike.store.journal.journal import JournalWriter


def write_table(project: ProjectFolder, name: str, *facts: TableWritten | TableRemoved) -> Path:
    folder = project.root / "data" / name
    folder.mkdir(parents=True)
    (folder / "part-00000-0000.parquet").write_bytes(b"x" * 1500)
    if facts:
        with JournalWriter(folder / "journal.jsonl") as journal:
            journal.append(list(facts))
    return folder


def written(name: str, at: float = 1.8e9) -> TableWritten:
    return TableWritten(
        at=at, id=name, source="pandas", columns={"x": "double", "y": "int64"}, files={"a": 3, "b": 4}, size_bytes=700
    )


def test_a_project_without_data_has_no_tables(tmp_path: Path) -> None:
    assert list_tables(ProjectFolder(tmp_path)) == []


def test_a_table_is_told_as_its_journal_has_it(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    write_table(project, "0123456789ab", written("0123456789ab"))
    (table,) = list_tables(project)
    header = table.header
    assert (table.id, table.rows, header.size_bytes, header.source) == ("0123456789ab", 7, 700, "pandas")
    assert list(header.columns) == ["x", "y"]
    assert table.removed_at is None


def test_a_table_without_a_journal_is_told_by_its_files(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    folder = write_table(project, "aaaaaaaaaaaa")
    os.utime(folder, (1.7e9, 1.7e9))
    (table,) = list_tables(project)
    assert (table.rows, table.header.size_bytes, table.header.at) == (None, 1500, 1.7e9)
    assert "no journal" in table.problem


def test_the_newest_comes_first_and_what_is_being_written_is_left_out(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    write_table(project, "aaaaaaaaaaaa", written("aaaaaaaaaaaa", at=1.0e9))
    write_table(project, "bbbbbbbbbbbb", written("bbbbbbbbbbbb", at=1.8e9), TableRemoved(at=1.9e9))
    write_table(project, ".cccccccccccc.new")
    tables = list_tables(project, with_removed=True)
    assert [(table.id, table.removed_at) for table in tables] == [("bbbbbbbbbbbb", 1.9e9), ("aaaaaaaaaaaa", None)]
    assert [table.id for table in list_tables(project)] == ["aaaaaaaaaaaa"]
