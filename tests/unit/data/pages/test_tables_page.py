"""The page of tables and the answer behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.layout import ProjectFolder
from cargobike.data.facts import TableWritten
from cargobike.data.pages.section import TablePage, size_text
from cargobike.store.journal.journal import JournalWriter
from cargobike.ui.web.answering import model_of
from support.web_project import client_of


def test_tables_are_listed_on_a_page_and_in_the_api(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    for name, rows in (("0123456789ab", 1200), ("ba9876543210", 7)):
        with JournalWriter(project.root / "data" / name / "journal.jsonl") as journal:
            fact = TableWritten(
                at=1.8e9 + rows, id=name, source="<b>", columns={"x": "double"}, files={"a": rows}, size_bytes=2_500_000
            )
            journal.append([fact])
    with client_of(project) as client:
        answer = client.get("/api/v1/data", params={"limit": 1})
        told = answer.json()
        assert (told["total"], [each["rows"] for each in told["tables"]]) == (2, [1200])
        assert set(told) == set(TablePage.__struct_fields__)
        model_of(TablePage).model_validate(told)
        page = client.get("/data").text
        assert '<a href="/data" aria-current="page">Data</a>' in page
        assert all(text in page for text in ("0123456789ab", "1,200", "2.5 MB", "&lt;b&gt;"))


def test_a_project_without_tables_says_how_to_make_one(tmp_path: Path) -> None:
    with client_of(ProjectFolder(tmp_path)) as client:
        assert "No tables yet" in client.get("/data").text


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (3_260_000_000, "3.3 GB")])
def test_sizes_are_told_for_people(size: int, text: str) -> None:
    assert size_text(size) == text
