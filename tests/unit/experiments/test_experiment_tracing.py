"""What experiments came from, as their rows in the index say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cargobike.core.asked import Asked, Feeding, Keeping, Search
from cargobike.core.facts import ExperimentStarted
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.experiments.index.index import Index
from cargobike.experiments.index.opening import open_index
from cargobike.experiments.index.origins import origins_of
from cargobike.experiments.tracing import edges
from cargobike.store.journal import journal as journal_module
from cargobike.store.journal.journal import JournalWriter

ASKED = {
    "dataset": Asked(feeding=Feeding(kind="dataset", source="team_value", version="2", part="train")),
    "table": Asked(name="a name", feeding=Feeding(kind="table", source="points", version="3")),
    "file": Asked(feeding=Feeding(kind="file", source="/data/rows.parquet")),
    "past file": Asked(feeding=Feeding(source="/data/rows.parquet")),
    "memory": Asked(keeping=Keeping(data="data/0123456789ab"), feeding=Feeding(source="a table in memory")),
    "repeated": Asked(reproduces="20270101-000000-aaaa", feeding=Feeding(kind="table", source="points", version="3")),
    "warm": Asked(search=Search(warm_start=("20270101-000000-aaaa", "20270101-000001-aaaa"))),
    "plain": Asked(name="plain"),
}
FIRST, SECOND = Thing("experiment", "20270101-000000-aaaa"), Thing("experiment", "20270101-000001-aaaa")
POINTS, ROWS = Thing("table", "points", "3"), Thing("file", "/data/rows.parquet")
EXPECTED: dict[str, list[tuple[Thing, str, str]]] = {
    "dataset": [(Thing("dataset", "team_value", "2"), "trained on", "part train")],
    "table": [(POINTS, "trained on", "")],
    "file": [(ROWS, "trained on", "")],
    "past file": [(ROWS, "trained on", "")],
    "memory": [(Thing("table", "0123456789ab"), "trained on", "a table in memory")],
    "repeated": [(POINTS, "trained on", ""), (FIRST, "made from", "its trials once more")],
    "warm": [(FIRST, "made from", "warm start"), (SECOND, "made from", "warm start")],
    "plain": [],
}


def write(project: ProjectFolder, number: int, asked: Asked) -> Thing:
    experiment_id = f"20270101-{number:06d}-aaaa"
    with JournalWriter(project.experiment(experiment_id).journal) as writer:
        writer.append([ExperimentStarted(at=1e9 + number, id=experiment_id, asked=asked)])
    return Thing("experiment", experiment_id)


def test_edges_lead_to_what_was_asked_for(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    made = {name: write(project, number, asked) for number, (name, asked) in enumerate(ASKED.items())}
    found = list(edges(project))
    for name, thing in made.items():
        mine = [(edge.source, edge.relation, edge.detail) for edge in found if edge.made == thing]
        assert mine == EXPECTED[name], name
    assert len(found) == sum(map(len, EXPECTED.values()))
    assert {edge.title for edge in found} == {"a name", ""}
    assert [edge.made.name for edge in found] == sorted((edge.made.name for edge in found), reverse=True)


def test_journals_that_were_read_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = ProjectFolder(tmp_path)
    first = write(project, 0, ASKED["table"])
    assert list(edges(project)) == [Edge(first, POINTS, "trained on", title="a name")]
    read: list[Path] = []
    whole = journal_module.JournalReader.__init__

    def noted(self: Any, path: Path, *rest: Any, **options: Any) -> None:
        read.append(path)
        whole(self, path, *rest, **options)

    monkeypatch.setattr(journal_module.JournalReader, "__init__", noted)
    assert len(list(edges(project))) == 1
    assert read == []
    second = write(project, 1, ASKED["table"])
    assert [edge.made for edge in edges(project)] == [second, first]
    assert {path.parent.name for path in read} == {second.name}


def test_an_index_without_a_query_of_its_own_answers_the_same(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    for number, asked in enumerate(ASKED.values()):
        write(project, number, asked)
    with open_index(project) as index:
        index.sync()
        assert index.origins() == Index.origins(index)
        assert len(index.origins()) == sum(len(origins_of(asked)) for asked in ASKED.values())


def test_a_project_without_experiments_has_no_edges(tmp_path: Path) -> None:
    assert list(edges(ProjectFolder(tmp_path / "none"))) == []
    assert not (tmp_path / "none").exists()
