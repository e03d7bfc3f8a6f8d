"""Groups that are fed a little at a time: what that asks of a storage does not grow, and small files come together."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from cargobike import features
from cargobike.features.groups import piecewise, remaining
from cargobike.features.groups.group import Group
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of
from support.logged_requests import Faulty

DAY = datetime(2026, 5, 1, tzinfo=UTC)
HOURS = 12


def hour(number: int, *ids: int, x: float = 0.0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "at": pa.array([DAY + timedelta(hours=number)] * len(ids), pa.timestamp("us", "UTC")),
            "x": pa.array([x] * len(ids), pa.float64()),
        }
    )


def content(rows: pa.Table) -> dict[tuple[int, datetime], Any]:
    found = [((row["id"], row["at"]), row["x"]) for row in rows.to_pylist()]
    assert len(dict(found)) == len(found), "one row for each key and time"
    return dict(found)


@pytest.fixture
def group() -> Group:
    made = features.create_group("things", key="id", event_time="at")
    for number in range(HOURS):
        made.insert(hour(number, 1, 2, 3))
    return made


def files_of(group: Group) -> list[str]:
    return list(group.log.newest().files)


def test_what_an_insert_asks_of_a_storage_does_not_grow_with_the_commits() -> None:
    storage = Faulty(storage_of(project.prepare()))
    definition = features.create_group("things", key="id", event_time="at", online=True).definition
    group = Group(definition, storage)
    asked = []
    for number in range(HOURS):
        before = len(storage.calls)
        group.insert(hour(number, 1, 2), made_from=[("file", "/data/rows.csv")])
        asked.append(Counter(what for what, _ in storage.calls[before:]))
    assert asked[-1] == asked[2], "neither commits nor origins are asked for again and again"
    assert asked[-1]["create"] == 1, "the commit; what the rows came from is written once"
    assert asked[0]["create"] > asked[-1]["create"]
    assert len(features.group("things").history()) == HOURS


def test_a_past_that_was_not_kept_is_read_as_ever(group: Group) -> None:
    fresh = features.group("things")
    fresh.log.newest()
    for commit in (HOURS - 1, 0, 5, 4, 6, HOURS - 1, 2):
        assert fresh.log.at(commit) == group.log.at(commit)
        assert len(content(fresh.read(as_of=commit))) == 3 * (commit + 1)


def test_rows_that_stay_of_small_files_are_put_together(group: Group) -> None:
    assert len(files_of(group)) == HOURS
    again = pa.concat_tables([hour(number, 1, x=1.0 + number) for number in range(HOURS)])
    commit = group.insert(again)
    assert (commit.inserted, commit.updated) == (0, HOURS)
    assert len(files_of(group)) == 2, "those that came, and those that stay of all others"
    expected = {(id, DAY + timedelta(hours=n)): 1.0 + n if id == 1 else 0.0 for id in (1, 2, 3) for n in range(HOURS)}
    assert content(group.read()) == expected
    assert set(content(group.read(as_of=HOURS - 1)).values()) == {0.0}
    for other in (group, features.group("things")):  # one knows the keys of the file that it wrote, one reads them
        assert other.insert(hour(3, 2, 3, x=9.0)).updated == 2
        assert other.insert(hour(3, 2, 3, x=0.0)).updated == 2
    assert content(group.read()) == expected


def test_small_files_are_read_whole_with_one_request(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Faulty(storage_of(project.prepare()))

    def refuse() -> None:
        raise AssertionError("a file was read in parts")

    monkeypatch.setattr(storage, "arrow", refuse)
    other = Group(group.definition, storage)
    assert other.insert(hour(1, 1, 2, 3)).unchanged == 3
    parts = [path for what, path in storage.calls if what == "read" and path.endswith(".parquet")]
    assert len(parts) == 2, "once for its keys, once for its rows"
    assert len(set(parts)) == 1
    assert other.statistics()["x"].count == 3 * HOURS


def test_nothing_is_written_for_files_of_which_nothing_stays(group: Group) -> None:
    group.insert(pa.concat_tables([hour(number, 1, 2, 3, x=5.0) for number in range(HOURS)]))
    assert len(files_of(group)) == 1
    assert set(content(group.read()).values()) == {5.0}


def test_large_pieces_stay_apart_and_files_do_not_grow_beyond_their_limit(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remaining, "MOST_ROWS", 5)
    group.insert(pa.concat_tables([hour(number, 1, x=1.0) for number in range(HOURS)]))
    assert len(files_of(group)) == 1 + HOURS // 2, "two files of two rows each fit into one"
    monkeypatch.setattr(remaining, "SMALL", 1)
    before = set(files_of(group))
    group.insert(pa.concat_tables([hour(number, 2, x=2.0) for number in range(HOURS)]))
    assert len(set(files_of(group)) - before) == 1 + HOURS // 2
    assert sorted(content(group.read()).values()) == [0.0] * HOURS + [1.0] * HOURS + [2.0] * HOURS


def test_pieces_that_are_inserted_together_do_the_same(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.features.groups.group.MOST_ROWS", 4)
    pieces = []
    real = piecewise.insert_pieces

    def counted(*args: Any, **kwargs: Any) -> Any:
        pieces.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr("cargobike.features.groups.group.insert_pieces", counted)
    batches = [hour(number, 1, x=1.0).to_batches()[0] for number in range(HOURS)]
    group.insert(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert pieces, "it came in several"
    came = set(group.history()[0].files)
    assert len(set(files_of(group)) - came) == 1
    assert sorted(content(group.read()).values()) == [0.0] * 2 * HOURS + [1.0] * HOURS
