"""A journal works for any product's facts: those of data, and of a product that nobody has heard of."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted, Fact, Facts
from cargobike.data.facts import DATA_FACTS, TableRemoved, TableWritten
from cargobike.store.journal.journal import JournalReader, JournalWriter, read_header, read_journal
from cargobike.store.journal.lines import seal
from cargobike.testing.journals import first_fact


class Planted(Fact, frozen=True, tag="planted"):
    version: int = 3
    cargobike: str = ""
    tree: str = ""


class Watered(Fact, frozen=True, tag="watered"):
    litres: float = 1.0


GARDEN: Facts[Planted | Watered, Planted] = Facts(Planted | Watered, first=Planted, version=3)

JOURNALS: dict[str, tuple[Facts, list[Fact]]] = {  # type: ignore[type-arg]  # of any kind
    "data": (
        DATA_FACTS,
        [TableWritten(at=1.0, id="t", columns={"x": "double"}, files={"a.parquet": 3}), TableRemoved(at=2.0, user="u")],
    ),
    "garden": (GARDEN, [Planted(at=1.0, tree="pear"), Watered(at=2.0), Watered(at=3.0, litres=2.5)]),
}


@pytest.fixture(params=JOURNALS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Facts, list[Fact]]:  # type: ignore[type-arg]
    facts, written = JOURNALS[request.param]
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as writer:
        writer.append(written)
    return path, facts, written


Case = tuple[Path, Facts, list[Fact]]  # type: ignore[type-arg]


def test_facts_come_back_as_they_were_written(case: Case) -> None:
    path, facts, written = case
    assert list(read_journal(path, facts)) == written
    assert JournalReader(path, facts).read_new() == written
    assert read_header(path, facts) == written[0]


def test_a_torn_tail_is_dropped_and_cut_off(case: Case) -> None:
    path, facts, written = case
    whole = path.read_bytes()
    for size in range(len(whole) - 1, len(whole) - len(seal(written[-1])), -7):
        path.write_bytes(whole[:size])
        assert list(read_journal(path, facts)) == written[:-1]
    with JournalWriter(path) as writer:
        writer.append(written[-1:])
    assert path.read_bytes() == whole


def test_damage_before_a_whole_line_names_file_and_line(case: Case) -> None:
    path, facts, _ = case
    path.write_bytes(path.read_bytes().replace(b'"at":1.0', b'"at":7.0', 1))
    with pytest.raises(StoreError, match=r"journal\.jsonl, line 1: damaged"):
        list(read_journal(path, facts))
    assert read_header(path, facts) is None


def test_facts_of_another_product_are_not_understood(case: Case) -> None:
    path, _, _ = case
    with pytest.raises(StoreError, match="line 1: written by a newer Cargobike"):
        list(read_journal(path, EXPERIMENT_FACTS))


def test_a_newer_version_of_its_journals_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as writer:
        writer.append([Planted(at=1.0, version=4, cargobike="9.1")])
    with pytest.raises(StoreError, match=r"newer Cargobike 9\.1 \(journal version 4; this one reads up to 3\)"):
        list(read_journal(path, GARDEN))


def test_a_reader_that_does_not_know_what_it_reads_finds_the_product(tmp_path: Path) -> None:
    table, experiment, garden = (tmp_path / name for name in ("table", "experiment", "garden"))
    for path, fact in (
        (table, TableWritten(at=1.0, id="t")),
        (experiment, first_fact(at=1.0, id="e", name="n")),
        (garden, Planted(at=1.0)),
    ):
        with JournalWriter(path) as writer:
            writer.append([fact])
    assert [type(fact) for fact in read_journal(table)] == [TableWritten]
    assert [type(fact) for fact in read_journal(experiment)] == [ExperimentStarted]
    with pytest.raises(StoreError, match="not a journal of a product that is installed here"):
        list(read_journal(garden))
