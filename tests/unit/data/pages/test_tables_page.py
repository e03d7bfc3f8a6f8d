"""The page of tables and the answer behind it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cargobike import data
from cargobike.core.layout import ProjectFolder
from cargobike.data.facts import TableWritten
from cargobike.data.keeping import remove_table
from cargobike.data.pages.answers import TableDetails, TablePage
from cargobike.data.pages.section import size_text
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


def test_a_table_has_a_page_with_versions_columns_and_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path))
    evil = "<script>alert(1)</script>"
    data.write({evil: [evil, None], "image": np.zeros((2, 4, 4), np.uint8)}, "pets")
    written = data.write({"x": [1.5] * 30}, "pets")
    with client_of(ProjectFolder(tmp_path)) as client:
        told = client.get("/api/v1/data/pets").json()
        assert (told["table"]["id"], told["table"]["fingerprint"]) == ("pets:2", written.fingerprint)
        assert [one["version"] for one in told["versions"]] == [2, 1]
        assert told["sample"] == [["1.5"]] * 20
        assert told["parts"][0]["row_groups"] == 1
        model_of(TableDetails).model_validate(told)
        page = client.get("/data/pets:1").text
        assert "&lt;script&gt;" in page
        assert evil not in page
        assert "tensor uint8[4, 4]" in page
        assert '<a href="/data/pets%3A2">' in page
        assert '<a href="/data/pets%3A2"><code>' in client.get("/data").text
        for wrong in ("nothing", "pets:9", "..%2F..%2Fetc", "%2Ftmp"):
            assert client.get(f"/api/v1/data/{wrong}").status_code == 404, wrong


def test_a_table_whose_files_are_gone_or_that_was_removed_still_has_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path))
    table = data.write({"x": [1]}, "lost")
    (Path(table.url) / table.files[0].path).unlink()
    gone = data.write({"x": [1]}, "gone")
    remove_table(ProjectFolder(tmp_path), "gone:1")
    (tmp_path / "data" / "odd" / "1").mkdir(parents=True)
    (tmp_path / "data" / "odd" / "1" / "manifest.json").write_text("{")
    with client_of(ProjectFolder(tmp_path)) as client:
        assert "is gone, though the table" in client.get("/data/lost").text
        assert "removed" in client.get(f"/data/{gone.name}").text
        assert "is no manifest" in client.get("/data/odd:1").text
        assert client.get("/api/v1/data").json()["total"] == 3


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (3_260_000_000, "3.3 GB")])
def test_sizes_are_told_for_people(size: int, text: str) -> None:
    assert size_text(size) == text
